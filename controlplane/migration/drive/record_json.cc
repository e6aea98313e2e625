// SPDX-License-Identifier: Apache-2.0
// Text forms of records. A controller of this version wrote them; a text that it cannot read is of
// another version or damaged, and nothing is driven from it.
#include <nlohmann/json.hpp>

#include "controlplane/migration/drive/procedure.h"
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
constexpr size_t kNodeFields = 15;
constexpr size_t kPendingFields = 4;
// Reasons come from tools; a record of many nodes has to fit a transaction of the store.
constexpr size_t kLongestStoredReason = 200;

// Enumerations are stored as numbers, in the order of names.h, which only grows at its ends.
template <typename Enum>
Enum ReadEnum(const Json& json, Enum last) {
  const auto number = json.get<uint32_t>();
  if (number > static_cast<uint32_t>(last)) throw std::out_of_range("an unknown state");
  return static_cast<Enum>(number);
}

Json NodeJson(const NodeRecord& node) {
  Json json = {node.state,       node.activity,       node.step,
               node.furthest,    node.not_before,     node.step_since,
               node.held,        node.wants_rollback, node.removal_issued,
               node.reachable,   node.lost_since,     node.since,
               node.backup_hash, node.switched_hash,  node.reason.substr(0, kLongestStoredReason)};
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
  if (json.size() != kNodeFields && json.size() != kNodeFields + kPendingFields)
    throw std::out_of_range("a node with other fields");
  if (json.size() > kNodeFields) {
    node.pending = PendingCommand{.id = json.at(15).get<uint64_t>(),
                                  .step = ReadEnum(json.at(16), Step::kVerifyOld),
                                  .issued_at = json.at(17).get<int64_t>(),
                                  .deadline = json.at(18).get<int64_t>()};
  }
  return node;
}

Json FindingsJson(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({finding.kind, finding.subject, finding.text.substr(0, kLongestStoredReason),
                    finding.remedy.substr(0, kLongestStoredReason)});
  }
  return list;
}

std::vector<Finding> ReadFindings(const Json& json) {
  std::vector<Finding> findings;
  if (json.size() > kMostFindings) throw std::out_of_range("too many findings");
  for (const Json& row : json) {
    findings.push_back({.kind = ReadEnum(row.at(0), Finding::Class::kWarns),
                        .subject = row.at(1).get<std::string>(),
                        .text = row.at(2).get<std::string>(),
                        .remedy = row.at(3).get<std::string>()});
  }
  return findings;
}

Record HeadFromJson(const Json& json) {
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
  json.at("preflight_wanted").get_to(record.preflight_wanted);
  json.at("inventory_matches").get_to(record.inventory_matches);
  // Records from before there were findings have none.
  if (json.contains("findings")) record.findings = ReadFindings(json.at("findings"));
  json.at("wave").get_to(record.wave);
  json.at("gate_round").get_to(record.gate_round);
  json.at("gate_pending").get_to(record.gate_pending);
  json.at("gate_deadline").get_to(record.gate_deadline);
  json.at("changes").get_to(record.changes);
  json.at("audit_head").get_to(record.audit_head);
  json.at("transitions").get_to(record.transitions);
  json.at("knobs").get_to(record.knobs);
  for (const Json& wave : json.at("waves")) {
    record.waves.push_back({ReadEnum(wave.at(0), WaveState::kHeld), wave.at(1).get<int64_t>(),
                            wave.at(2).get<bool>()});
  }
  return record;
}

// Returns why the node cannot be in this record; nullptr: it can.
const char* ProblemOf(const Plan& plan, const Record& record, const NodeRecord& node) {
  const auto forward = ForwardSteps(plan.restarts);
  if (node.furthest > forward.size()) return "a step that the procedure does not have";
  const auto undo = UndoSteps(plan.restarts, node.furthest);
  const bool out_of_range = (node.activity == Activity::kForward && node.step >= forward.size()) ||
                            (node.activity == Activity::kUndo && node.step >= undo.size()) ||
                            (node.activity == Activity::kRemoveOld && node.step != 0) ||
                            node.step > forward.size();
  if (out_of_range) return "a step that the procedure does not have";
  if (!node.pending.has_value()) return nullptr;
  if (node.pending->id >= record.next_command) return "a command that was not issued";
  Step expected = Step::kRemoveOld;
  if (node.activity == Activity::kForward) expected = forward[node.step].step;
  if (node.activity == Activity::kUndo) expected = undo[node.step];
  if (node.activity == Activity::kNone || node.pending->step != expected)
    return "a command of another step";
  return nullptr;
}

void Check(const Plan& plan, const Record& record) {
  if (record.plan_hash != HashOf(plan)) throw std::out_of_range("a record of another plan");
  if (record.waves.size() != plan.waves.size() || record.nodes.size() != plan.nodes.size() ||
      record.wave >= record.waves.size())
    throw std::out_of_range("other waves or nodes than planned");
  for (const NodeRecord& node : record.nodes) {
    if (const char* const problem = ProblemOf(plan, record, node)) throw std::out_of_range(problem);
  }
}

}  // namespace

std::string_view WordOf(Finding::Class kind) {
  return kind == Finding::Class::kBlocks ? "blocks" : "warns";
}

std::string RecordHeadJson(const Record& record) {
  Json waves = Json::array();
  for (const WaveRecord& wave : record.waves)
    waves.push_back({wave.state, wave.since, wave.approved});
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
                     {"preflight_wanted", record.preflight_wanted},
                     {"inventory_matches", record.inventory_matches},
                     {"findings", FindingsJson(record.findings)},
                     {"wave", record.wave},
                     {"gate_round", record.gate_round},
                     {"gate_pending", record.gate_pending},
                     {"gate_deadline", record.gate_deadline},
                     {"changes", record.changes},
                     {"audit_head", record.audit_head},
                     {"transitions", record.transitions},
                     {"knobs", record.knobs},
                     {"waves", std::move(waves)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string NodeRowJson(const Record& record, uint32_t row) {
  Json nodes = Json::array();
  const size_t end = std::min(record.nodes.size(), size_t{row + 1} * kNodesPerRow);
  for (size_t i = size_t{row} * kNodesPerRow; i < end; ++i)
    nodes.push_back(NodeJson(record.nodes[i]));
  return nodes.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Record ReadRecord(const Plan& plan, std::string_view head, const std::vector<std::string>& rows,
                  std::string& problem) {
  problem.clear();
  try {
    Record record = HeadFromJson(Json::parse(head));
    for (const std::string& row : rows) {
      const Json nodes = Json::parse(row);
      if (nodes.size() > kNodesPerRow) throw std::out_of_range("a row of too many nodes");
      for (const Json& node : nodes) record.nodes.push_back(ReadNode(node));
    }
    Check(plan, record);
    return record;
  } catch (const std::exception& error) {
    problem = std::string("not a record of this migration: ") + error.what();
    return {};
  }
}

}  // namespace rocegw::migration
