// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/adapter/protocol.h"

#include "controlplane/migration/adapter/redact.h"
#include "controlplane/migration/model/hash.h"
#include "controlplane/migration/model/json_fields.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::migration {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostText = 1024;
constexpr size_t kMostCalls = 64;

void CheckFrame(JsonFields& fields, const std::string& id) {
  if (fields.Number("protocol", 0, 0, INT32_MAX) != kAdapterProtocol)
    fields.Complain("protocol", "must be " + std::to_string(kAdapterProtocol));
  if (fields.Text("id", 64) != id) fields.Complain("id", "is not the one of the request");
}

template <typename Value>
std::optional<Value> Amount(JsonFields& fields, const Json& document, const char* field) {
  if (!document.contains(field)) return std::nullopt;
  return static_cast<Value>(fields.Number(field, 0, 0, INT64_MAX));
}

std::optional<Transport> Witness(JsonFields& fields, const Json& document, const char* field) {
  if (!document.contains(field)) return std::nullopt;
  return fields.Word(field, Transport::kTcp);
}

}  // namespace

std::string RequestLine(const AdapterRequest& request) {
  Json json = {{"protocol", kAdapterProtocol},
               {"id", request.id},
               {"call", request.call},
               {"deadline_seconds", request.deadline_seconds}};
  if (request.question) json["question"] = true;
  if (!request.cluster.empty()) json["cluster"] = request.cluster;
  if (!request.node.empty()) {
    json["node"] = request.node;
    json["from"] = WordOf(request.from);
    json["to"] = WordOf(request.to);
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

AdapterHello ReadHello(std::string_view line, const std::string& id, std::string& problem) {
  problem.clear();
  AdapterHello hello;
  const Json document = ParseJsonObject(line, kMostAnswerBytes, problem);
  if (!problem.empty()) return {};
  JsonFields fields(document, "", problem);
  CheckFrame(fields, id);
  hello.name = fields.Name("adapter");
  hello.version = fields.Text("version", 64);
  hello.calls = fields.Names("calls", kMostCalls);
  fields.Finish();
  return problem.empty() ? hello : AdapterHello();
}

AdapterAnswer ReadAnswer(std::string_view line, const std::string& id) {
  std::string problem;
  AdapterAnswer answer;
  const Json document = ParseJsonObject(line, kMostAnswerBytes, problem);
  if (problem.empty()) {
    JsonFields fields(document, "", problem);
    CheckFrame(fields, id);
    if (!document.contains("outcome")) fields.Complain("outcome", "is missing");
    answer.outcome = fields.Word("outcome", Outcome::kUnparsable);
    // The controller alone decides these two.
    if (answer.outcome == Outcome::kStaleEpoch || answer.outcome == Outcome::kTimedOut)
      fields.Complain("outcome", "is not a word that an adapter may say");
    answer.text = ForeignText(Redacted(fields.Text("text", kMostText)));
    Evidence& evidence = answer.evidence;
    evidence.outstanding = Amount<uint64_t>(fields, document, "outstanding");
    evidence.clients_on_old = Amount<uint64_t>(fields, document, "clients_on_old");
    evidence.config_hash = fields.Text("config_hash", 128);
    evidence.stated = Witness(fields, document, "stated");
    evidence.counted = Witness(fields, document, "counted");
    if (document.contains("journal_intact"))
      evidence.journal_intact = fields.Flag("journal_intact", false);
    evidence.gateway_version = fields.Text("gateway_version", 64);
    fields.Finish();
  }
  if (!problem.empty()) answer = {.text = "the adapter's answer is not understood: " + problem};
  answer.evidence.output_digest = HashText(line);
  return answer;
}

std::string_view OnlyLine(std::string_view output, std::string& problem) {
  problem.clear();
  const size_t end = output.find('\n');
  if (end == std::string_view::npos) {
    problem = output.empty() ? "no answer" : "an answer without the end of its line";
  } else if (end + 1 != output.size()) {
    problem = "more than one line";
  }
  return problem.empty() ? output.substr(0, end) : std::string_view();
}

}  // namespace rocegw::migration
