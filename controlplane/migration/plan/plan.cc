// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/plan/plan.h"

#include "controlplane/migration/model/hash.h"
#include "controlplane/migration/model/inventory.h"
#include "controlplane/migration/model/json_fields.h"

namespace rocegw::migration {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLongestTime = 366LL * 86'400;
constexpr int64_t kLastMoment = 1LL << 40;
constexpr int kPlanFormat = 1;

Json KnobsJson(const Knobs& knobs) {
  return {{"max_unavailable", knobs.max_unavailable},
          {"soak", knobs.soak},
          {"step_deadline", knobs.step_deadline},
          {"retry_after", knobs.retry_after},
          {"lost_after", knobs.lost_after},
          {"preflight_valid", knobs.preflight_valid},
          {"window_begin", knobs.window_begin},
          {"window_end", knobs.window_end},
          {"automatic_approval", knobs.automatic_approval}};
}

Json ToJson(const Plan& plan) {
  Json nodes = Json::array();
  for (const PlannedNode& node : plan.nodes) {
    nodes.push_back({{"name", node.name},
                     {"domain", node.domain},
                     {"from", WordOf(node.from)},
                     {"quorum", node.quorum},
                     {"keeps_old", node.keeps_old}});
  }
  Json waves = Json::array();
  for (const Wave& wave : plan.waves) {
    Json names = Json::array();
    for (const uint32_t node : wave.nodes) names.push_back(plan.nodes[node].name);
    waves.push_back({{"name", wave.name}, {"nodes", std::move(names)}});
  }
  return {{"format", kPlanFormat},
          {"name", plan.name},
          {"cluster", plan.cluster},
          {"adapter", plan.adapter},
          {"inventory_hash", plan.inventory_hash},
          {"target", WordOf(plan.target)},
          {"class", WordOf(plan.system_class)},
          {"restarts", plan.restarts},
          {"flag_day", plan.flag_day},
          {"per_domain", plan.per_domain},
          {"oldest_version", plan.oldest_version},
          {"newest_version", plan.newest_version},
          {"knobs", KnobsJson(plan.knobs)},
          {"gates", plan.gates},
          {"nodes", std::move(nodes)},
          {"waves", std::move(waves)},
          {"skipped", plan.skipped},
          {"notes", plan.notes}};
}

Knobs ReadKnobs(const Json& object, std::string& problem) {
  JsonFields fields(object, "knobs", problem);
  Knobs knobs;
  knobs.max_unavailable = static_cast<uint32_t>(
      fields.Number("max_unavailable", 1, 1, static_cast<int64_t>(kMostNodes)));
  knobs.soak = fields.Number("soak", knobs.soak, 0, kLongestTime);
  knobs.step_deadline = fields.Number("step_deadline", knobs.step_deadline, 1, kLongestTime);
  knobs.retry_after = fields.Number("retry_after", knobs.retry_after, 1, kLongestTime);
  knobs.lost_after = fields.Number("lost_after", knobs.lost_after, 1, kLongestTime);
  knobs.preflight_valid = fields.Number("preflight_valid", knobs.preflight_valid, 1, kLongestTime);
  knobs.window_begin = fields.Number("window_begin", 0, 0, kLastMoment);
  knobs.window_end = fields.Number("window_end", 0, 0, kLastMoment);
  knobs.automatic_approval = fields.Flag("automatic_approval", false);
  fields.Finish();
  return knobs;
}

std::vector<std::string> ReadTexts(JsonFields& fields, const char* field, size_t most) {
  std::vector<std::string> texts;
  const Json* const array = fields.Array(field, most);
  if (array == nullptr) return texts;
  for (const Json& value : *array) {
    if (!value.is_string() || value.get_ref<const std::string&>().size() > 4096) {
      fields.Complain(field, "must hold texts of at most 4096 bytes");
      return {};
    }
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

void ReadNodes(JsonFields& fields, Plan& plan, std::string& problem) {
  const Json* const nodes = fields.Array("nodes", kMostNodes);
  if (nodes == nullptr) return;
  for (const Json& object : *nodes) {
    JsonFields node(object, "nodes[" + std::to_string(plan.nodes.size()) + "]", problem);
    PlannedNode read;
    read.name = node.Name("name");
    read.domain = node.Text("domain", 253);
    read.from = node.Word("from", Transport::kTcp);
    read.quorum = node.Flag("quorum", false);
    read.keeps_old = node.Flag("keeps_old", false);
    node.Finish();
    if (!problem.empty()) return;
    plan.nodes.push_back(std::move(read));
  }
}

// Each node of the plan is in exactly one wave.
void ReadWaves(JsonFields& fields, Plan& plan, std::string& problem) {
  std::map<std::string, uint32_t> indices;
  for (uint32_t i = 0; i < plan.nodes.size(); ++i) {
    if (!indices.emplace(plan.nodes[i].name, i).second)
      return fields.Complain("nodes", "has " + plan.nodes[i].name + " twice");
  }
  const Json* const waves = fields.Array("waves", kMostWaves);
  if (waves == nullptr) return;
  for (const Json& object : *waves) {
    JsonFields wave(object, "waves[" + std::to_string(plan.waves.size()) + "]", problem);
    Wave read;
    read.name = wave.Name("name");
    for (const std::string& name : wave.Names("nodes", kMostNodes)) {
      const auto found = indices.find(name);
      if (found == indices.end())
        return wave.Complain("nodes",
                             "has " + name + ", which is no node of the plan or in two waves");
      read.nodes.push_back(found->second);
      indices.erase(found);
    }
    if (read.nodes.empty()) wave.Complain("nodes", "is empty");
    wave.Finish();
    if (!problem.empty()) return;
    plan.waves.push_back(std::move(read));
  }
  if (!indices.empty()) fields.Complain("waves", "do not have node " + indices.begin()->first);
}

}  // namespace

std::string HashOf(const Plan& plan) { return HashText(ToJson(plan).dump()); }

std::string PlanJson(const Plan& plan) {
  Json json = ToJson(plan);
  json["hash"] = HashText(json.dump());
  return json.dump(2) + "\n";
}

Plan ReadPlan(std::string_view text, std::string& problem) {
  problem.clear();
  const Json document = ParseJsonObject(text, kMostPlanBytes, problem);
  if (!problem.empty()) return {};
  JsonFields fields(document, "", problem);
  Plan plan;
  fields.Number("format", 0, kPlanFormat, kPlanFormat);
  plan.name = fields.Name("name");
  plan.cluster = fields.Name("cluster");
  plan.adapter = fields.Name("adapter");
  plan.inventory_hash = fields.Text("inventory_hash", 128);
  plan.target = fields.Word("target", Transport::kGateway);
  plan.system_class = fields.Word("class", SystemClass::kDualPath);
  plan.restarts = fields.Flag("restarts", false);
  plan.flag_day = fields.Flag("flag_day", false);
  plan.per_domain = fields.Text("per_domain", 253);
  plan.oldest_version = fields.Text("oldest_version", 64);
  plan.newest_version = fields.Text("newest_version", 64);
  if (const Json* const knobs = fields.Object("knobs")) plan.knobs = ReadKnobs(*knobs, problem);
  plan.gates = ReadTexts(fields, "gates", kMostGates);
  ReadNodes(fields, plan, problem);
  ReadWaves(fields, plan, problem);
  plan.skipped = fields.Names("skipped", kMostNodes);
  plan.notes = ReadTexts(fields, "notes", 1024);
  const std::string hash = fields.Text("hash", 128);
  fields.Finish();
  if (problem.empty() && plan.nodes.empty()) problem = "no nodes";
  if (problem.empty() && hash != HashOf(plan)) {
    problem = "the plan does not fit its hash: it was changed after it was made; make a new one";
  }
  return problem.empty() ? plan : Plan();
}

}  // namespace rocegw::migration
