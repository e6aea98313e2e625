// SPDX-License-Identifier: Apache-2.0
// Text forms of records. A controller of this version wrote them; a text that it cannot read is of
// another version or damaged, and nothing is driven from it.
#include <nlohmann/json.hpp>

#include "controlplane/migration/drive/record.h"
#include "controlplane/migration/model/inventory.h"

namespace rocegw::migration {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Knobs, max_unavailable, soak, step_deadline, retry_after,
                                   lost_after, preflight_valid, window_begin, window_end,
                                   automatic_approval)

namespace {

using Json = nlohmann::json;

constexpr int kRecordFormat = 1;
constexpr auto kLastState = MigrationState::kAborted;

// Enumerations are stored as numbers, in the order of names.h, which only grows at its ends.
template <typename Enum>
Enum ReadEnum(const Json& json, Enum last) {
  const auto number = json.get<uint32_t>();
  if (number > static_cast<uint32_t>(last)) throw std::out_of_range("an unknown state");
  return static_cast<Enum>(number);
}

Json NodeJson(const NodeRecord& node) {
  Json json = {node.state,          node.activity,      node.step,       node.furthest,
               node.not_before,     node.step_since,    node.held,       node.wants_rollback,
               node.removal_issued, node.reachable,     node.lost_since, node.since,
               node.backup_hash,    node.switched_hash, node.reason};
  if (node.pending.has_value()) {
    json.push_back(node.pending->id);
    json.push_back(node.pending->step);
    json.push_back(node.pending->issued_at);
    json.push_back(node.pending->deadline);
  }
  return json;
}

NodeRecord ReadNode(const Json& json) {
  NodeRecord node;
  node.state = ReadEnum(json.at(0), NodeState::kSkipped);
  node.activity = ReadEnum(json.at(1), Activity::kRemoveOld);
  json.at(2).get_to(node.step);
  json.at(3).get_to(node.furthest);
  json.at(4).get_to(node.not_before);
  json.at(5).get_to(node.step_since);
  json.at(6).get_to(node.held);
  json.at(7).get_to(node.wants_rollback);
  json.at(8).get_to(node.removal_issued);
  json.at(9).get_to(node.reachable);
  json.at(10).get_to(node.lost_since);
  json.at(11).get_to(node.since);
  json.at(12).get_to(node.backup_hash);
  json.at(13).get_to(node.switched_hash);
  json.at(14).get_to(node.reason);
  if (json.size() > 15) {
    node.pending = PendingCommand{.id = json.at(15).get<uint64_t>(),
                                  .step = ReadEnum(json.at(16), Step::kVerifyOld),
                                  .issued_at = json.at(17).get<int64_t>(),
                                  .deadline = json.at(18).get<int64_t>()};
  }
  return node;
}

Record FromJson(const Json& json) {
  Record record;
  if (json.at("format").get<int>() != kRecordFormat) throw std::out_of_range("an unknown format");
  json.at("plan_hash").get_to(record.plan_hash);
  record.state = ReadEnum(json.at("state"), kLastState);
  record.resumes_to = ReadEnum(json.at("resumes_to"), kLastState);
  record.rollback_ends_as = ReadEnum(json.at("rollback_ends_as"), kLastState);
  record.pause_reason = ReadEnum(json.at("pause_reason"), PauseReason::kNodeBlocked);
  json.at("reason").get_to(record.reason);
  json.at("epoch").get_to(record.epoch);
  json.at("next_command").get_to(record.next_command);
  json.at("now").get_to(record.now);
  json.at("since").get_to(record.since);
  json.at("preflight_at").get_to(record.preflight_at);
  json.at("inventory_matches").get_to(record.inventory_matches);
  json.at("wave").get_to(record.wave);
  json.at("gate_round").get_to(record.gate_round);
  json.at("gate_pending").get_to(record.gate_pending);
  json.at("gate_deadline").get_to(record.gate_deadline);
  json.at("changes").get_to(record.changes);
  json.at("audit_head").get_to(record.audit_head);
  json.at("knobs").get_to(record.knobs);
  for (const Json& wave : json.at("waves")) {
    record.waves.push_back({ReadEnum(wave.at(0), WaveState::kHeld), wave.at(1).get<int64_t>(),
                            wave.at(2).get<bool>()});
  }
  for (const Json& node : json.at("nodes")) record.nodes.push_back(ReadNode(node));
  if (record.wave >= record.waves.size() || record.nodes.size() > kMostNodes)
    throw std::out_of_range("a wave that is not there");
  return record;
}

}  // namespace

std::string RecordJson(const Record& record) {
  Json waves = Json::array();
  for (const WaveRecord& wave : record.waves)
    waves.push_back({wave.state, wave.since, wave.approved});
  Json nodes = Json::array();
  for (const NodeRecord& node : record.nodes) nodes.push_back(NodeJson(node));
  const Json json = {{"format", kRecordFormat},
                     {"plan_hash", record.plan_hash},
                     {"state", record.state},
                     {"resumes_to", record.resumes_to},
                     {"rollback_ends_as", record.rollback_ends_as},
                     {"pause_reason", record.pause_reason},
                     {"reason", record.reason},
                     {"epoch", record.epoch},
                     {"next_command", record.next_command},
                     {"now", record.now},
                     {"since", record.since},
                     {"preflight_at", record.preflight_at},
                     {"inventory_matches", record.inventory_matches},
                     {"wave", record.wave},
                     {"gate_round", record.gate_round},
                     {"gate_pending", record.gate_pending},
                     {"gate_deadline", record.gate_deadline},
                     {"changes", record.changes},
                     {"audit_head", record.audit_head},
                     {"knobs", record.knobs},
                     {"waves", std::move(waves)},
                     {"nodes", std::move(nodes)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Record ReadRecord(std::string_view text, std::string& problem) {
  problem.clear();
  try {
    return FromJson(Json::parse(text));
  } catch (const std::exception& error) {
    problem = std::string("not a record of a migration: ") + error.what();
    return {};
  }
}

}  // namespace rocegw::migration
