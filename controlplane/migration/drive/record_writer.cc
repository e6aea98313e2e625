// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/record_writer.h"

#include <nlohmann/json.hpp>

#include "controlplane/migration/model/hash.h"

namespace rocegw::migration {

std::string NextAuditHead(const std::string& head, const std::string& plan_hash,
                          const Change& change) {
  const nlohmann::json fields = {
      head,          plan_hash,         change.number,       change.time,
      change.who,    change.subject,    change.before,       change.after,
      change.reason, change.request_id, change.output_digest};
  return HashText(fields.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

void RecordWriter::ActFor(const Order& order) {
  who_ = order.who;
  request_id_ = order.request_id;
}

void RecordWriter::Add(std::string subject, std::string_view before, std::string_view after,
                       std::string reason) {
  Change change{.number = ++record_.changes,
                .time = record_.now,
                .who = who_,
                .subject = std::move(subject),
                .before = std::string(before),
                .after = std::string(after),
                .reason = std::move(reason),
                .request_id = request_id_,
                .output_digest = output_digest_};
  record_.audit_head = NextAuditHead(record_.audit_head, record_.plan_hash, change);
  transition_.changes.push_back(std::move(change));
}

void RecordWriter::SetMigration(MigrationState state, std::string reason) {
  if (record_.state == state) return;
  Add("migration", WordOf(record_.state), WordOf(state), reason);
  record_.state = state;
  record_.since = record_.now;
  record_.reason = std::move(reason);
  if (state != MigrationState::kPaused) record_.pause_reason = PauseReason::kNone;
}

void RecordWriter::SetWave(uint32_t wave, WaveState state) {
  WaveRecord& record = record_.waves[wave];
  if (record.state == state) return;
  Add("wave " + plan_.waves[wave].name, WordOf(record.state), WordOf(state), {});
  record.state = state;
  record.since = record_.now;
}

void RecordWriter::SetNode(uint32_t node, NodeState state, std::string reason) {
  NodeRecord& record = Touch(node);
  record.reason = reason;
  if (record.state == state) return;
  Add("node " + plan_.nodes[node].name, WordOf(record.state), WordOf(state), std::move(reason));
  record.state = state;
  record.since = record_.now;
}

void RecordWriter::Pause(PauseReason why, std::string reason) {
  if (record_.state == MigrationState::kPaused) return;
  record_.resumes_to =
      record_.state == MigrationState::kAwaitingApproval ? MigrationState::kRunning : record_.state;
  SetMigration(MigrationState::kPaused, std::string(WordOf(why)) + ": " + reason);
  record_.pause_reason = why;
}

void RecordWriter::NoteOrder(const std::string& subject, const std::string& text) {
  Add(subject, {}, {}, text);
}

NodeRecord& RecordWriter::Touch(uint32_t node) {
  transition_.touched.push_back(node);
  return record_.nodes[node];
}

}  // namespace rocegw::migration
