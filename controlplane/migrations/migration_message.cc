// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/migration_message.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "controlplane/migration/simulate/simulation.h"

namespace rocegw::migrations {
namespace {

using google::protobuf::util::TimeUtil;
using migration::Knobs;
using migration::NodeRecord;

// More exits than a person reads are not listed.
constexpr size_t kMostExits = 20;

std::string Text(std::string_view word) { return std::string(word); }

void AddWaves(const StoredMigration& stored, admin::v1::Migration& message) {
  for (size_t w = 0; w < stored.plan.waves.size(); ++w) {
    const migration::WaveRecord& record = stored.record.waves[w];
    admin::v1::MigrationWave& wave = *message.add_waves();
    wave.set_name(stored.plan.waves[w].name);
    wave.set_state(Text(WordOf(record.state)));
    *wave.mutable_since() = TimeUtil::SecondsToTimestamp(record.since);
    wave.set_approved(record.approved);
    wave.set_nodes(static_cast<uint32_t>(stored.plan.waves[w].nodes.size()));
    for (const uint32_t i : stored.plan.waves[w].nodes)
      ++(*wave.mutable_states())[Text(WordOf(stored.record.nodes[i].state))];
  }
}

void AddNodes(const StoredMigration& stored, admin::v1::Migration& message) {
  for (const migration::Wave& wave : stored.plan.waves) {
    for (const uint32_t i : wave.nodes) {
      const NodeRecord& record = stored.record.nodes[i];
      admin::v1::MigrationNode& node = *message.add_nodes();
      node.set_name(stored.plan.nodes[i].name);
      node.set_wave(wave.name);
      node.set_state(Text(WordOf(record.state)));
      node.set_reason(record.reason);
      *node.mutable_since() = TimeUtil::SecondsToTimestamp(record.since);
      node.set_held(record.held);
      node.set_reachable(record.reachable);
      if (!record.pending.has_value()) continue;
      node.set_step(Text(WordOf(record.pending->step)));
      *node.mutable_step_deadline() = TimeUtil::SecondsToTimestamp(record.pending->deadline);
    }
  }
}

void SetLimits(const Knobs& knobs, admin::v1::MigrationLimits& limits) {
  limits.set_max_unavailable(knobs.max_unavailable);
  limits.set_soak_seconds(static_cast<uint32_t>(knobs.soak));
  limits.set_step_deadline_seconds(static_cast<uint32_t>(knobs.step_deadline));
  limits.set_retry_after_seconds(static_cast<uint32_t>(knobs.retry_after));
  limits.set_lost_after_seconds(static_cast<uint32_t>(knobs.lost_after));
  limits.set_preflight_valid_seconds(static_cast<uint32_t>(knobs.preflight_valid));
  limits.set_automatic_approval(knobs.automatic_approval);
  limits.set_window_begin(knobs.window_begin);
  limits.set_window_end(knobs.window_end);
}

}  // namespace

admin::v1::Migration MessageOf(const StoredMigration& stored, Detail detail, int64_t now) {
  const migration::Record& record = stored.record;
  admin::v1::Migration message;
  message.set_name("migrations/" + stored.id);
  message.set_plan_hash(record.plan_hash);
  message.set_cluster(stored.plan.cluster);
  message.set_adapter(stored.plan.adapter);
  message.set_target(Text(WordOf(stored.plan.target)));
  message.set_state(Text(WordOf(record.state)));
  if (record.pause_reason != migration::PauseReason::kNone)
    message.set_pause_reason(Text(WordOf(record.pause_reason)));
  message.set_reason(record.reason);
  *message.mutable_since() = TimeUtil::SecondsToTimestamp(record.since);
  message.set_epoch(record.epoch);
  AddWaves(stored, message);
  SetLimits(record.knobs, *message.mutable_limits());
  message.set_gates_pending(record.gate_pending);
  message.set_preflight_pending(record.preflight_wanted);
  *message.mutable_read_time() = TimeUtil::SecondsToTimestamp(now);
  if (detail == Detail::kSummary) return message;
  AddNodes(stored, message);
  for (const std::string& gate : stored.plan.gates) message.add_gates(gate);
  for (const migration::Finding& found : record.findings) {
    admin::v1::PreflightFinding& finding = *message.add_findings();
    finding.set_class_(Text(WordOf(found.kind)));
    finding.set_subject(found.subject);
    finding.set_text(found.text);
    finding.set_remedy(found.remedy);
  }
  migration::Record copy = record;
  const int64_t wake_at = migration::Handle(stored.plan, copy, migration::Tick{}, now).wake_at;
  if (wake_at != 0) *message.mutable_wake_time() = TimeUtil::SecondsToTimestamp(wake_at);
  for (const migration::Order& order : migration::Exits(stored.plan, record)) {
    if (message.exits_size() == static_cast<int>(kMostExits)) break;
    message.add_exits(order.verb == migration::Verb::kApprove
                          ? "approve " + stored.plan.waves[*order.wave].name
                          : migration::OrderText(stored.plan, order));
  }
  return message;
}

admin::v1::MigrationEvent MessageOf(const migration::Change& change) {
  admin::v1::MigrationEvent event;
  event.set_number(change.number);
  *event.mutable_time() = TimeUtil::SecondsToTimestamp(change.time);
  event.set_who(change.who);
  event.set_subject(change.subject);
  event.set_before(change.before);
  event.set_after(change.after);
  event.set_reason(change.reason);
  return event;
}

Knobs KnobsOf(const Knobs& before, const admin::v1::MigrationLimits& limits) {
  Knobs knobs = before;
  if (limits.has_max_unavailable()) knobs.max_unavailable = limits.max_unavailable();
  if (limits.has_soak_seconds()) knobs.soak = limits.soak_seconds();
  if (limits.has_step_deadline_seconds()) knobs.step_deadline = limits.step_deadline_seconds();
  if (limits.has_retry_after_seconds()) knobs.retry_after = limits.retry_after_seconds();
  if (limits.has_lost_after_seconds()) knobs.lost_after = limits.lost_after_seconds();
  if (limits.has_preflight_valid_seconds())
    knobs.preflight_valid = limits.preflight_valid_seconds();
  if (limits.has_automatic_approval()) knobs.automatic_approval = limits.automatic_approval();
  if (limits.has_window_begin()) knobs.window_begin = limits.window_begin();
  if (limits.has_window_end()) knobs.window_end = limits.window_end();
  return knobs;
}

}  // namespace rocegw::migrations
