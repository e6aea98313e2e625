// SPDX-License-Identifier: Apache-2.0
// Text form of command books. An agent of this version wrote it; a text that it cannot read is of
// another version or damaged, and no command runs by it.
#include <nlohmann/json.hpp>

#include "controlplane/migration/drive/command_book.h"

namespace rocegw::migration {
namespace {

using Json = nlohmann::json;

constexpr int kBookFormat = 1;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json WordOrNull(const std::optional<Transport>& value) {
  return value.has_value() ? Json(WordOf(*value)) : Json(nullptr);
}

template <typename T>
void ReadOptional(const Json& json, std::optional<T>& to) {
  if (!json.is_null()) to = json.get<T>();
}

template <typename Enum>
Enum ReadWord(const Json& json) {
  const auto value = FromWord<Enum>(json.get<std::string>());
  if (!value.has_value()) throw std::out_of_range("an unknown word");
  return *value;
}

Json ResultJson(const StepResult& result) {
  const Evidence& evidence = result.evidence;
  return {{"command", result.command},
          {"outcome", WordOf(result.outcome)},
          {"text", result.text},
          {"outstanding", OrNull(evidence.outstanding)},
          {"config_hash", evidence.config_hash},
          {"stated", WordOrNull(evidence.stated)},
          {"counted", WordOrNull(evidence.counted)},
          {"journal_intact", OrNull(evidence.journal_intact)},
          {"clients_on_old", OrNull(evidence.clients_on_old)},
          {"gateway_version", evidence.gateway_version},
          {"output_digest", evidence.output_digest}};
}

StepResult ReadResult(const Json& json) {
  StepResult result;
  json.at("command").get_to(result.command);
  result.outcome = ReadWord<Outcome>(json.at("outcome"));
  json.at("text").get_to(result.text);
  Evidence& evidence = result.evidence;
  ReadOptional(json.at("outstanding"), evidence.outstanding);
  json.at("config_hash").get_to(evidence.config_hash);
  if (!json.at("stated").is_null()) evidence.stated = ReadWord<Transport>(json.at("stated"));
  if (!json.at("counted").is_null()) evidence.counted = ReadWord<Transport>(json.at("counted"));
  ReadOptional(json.at("journal_intact"), evidence.journal_intact);
  ReadOptional(json.at("clients_on_old"), evidence.clients_on_old);
  json.at("gateway_version").get_to(evidence.gateway_version);
  json.at("output_digest").get_to(evidence.output_digest);
  return result;
}

}  // namespace

std::string CommandBook::Json() const {
  nlohmann::json results = nlohmann::json::array();
  for (const auto& [command, result] : results_) results.push_back(ResultJson(result));
  const nlohmann::json book = {{"format", kBookFormat},
                               {"incarnation", incarnation_},
                               {"epoch", epoch_},
                               {"newest", newest_},
                               {"results", std::move(results)}};
  return book.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

CommandBook CommandBook::Read(std::string_view text, std::string& problem) {
  problem.clear();
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    CommandBook book;
    if (json.at("format").get<int>() != kBookFormat) throw std::out_of_range("an unknown format");
    json.at("incarnation").get_to(book.incarnation_);
    json.at("epoch").get_to(book.epoch_);
    json.at("newest").get_to(book.newest_);
    for (const nlohmann::json& row : json.at("results")) {
      StepResult result = ReadResult(row);
      if (result.command > book.newest_ || book.results_.size() == kKept)
        throw std::out_of_range("a result of no command");
      book.results_[result.command] = std::move(result);
    }
    return book;
  } catch (const std::exception& error) {
    problem = std::string("not a book of commands: ") + error.what();
    return {};
  }
}

}  // namespace rocegw::migration
