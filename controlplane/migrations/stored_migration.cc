// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/stored_migration.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace rocegw::migrations {
namespace {

using migration::Change;
using migration::MigrationState;
using migration::Record;
using Json = nlohmann::json;

std::string RowKey(const std::string& id, uint32_t row) {
  std::array<char, 16> number{};
  std::snprintf(number.data(), number.size(), "nodes/%05u", row);
  return PrefixOf(id) + number.data();
}

std::string EventKey(const std::string& id, uint64_t transition) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "%020llu",
                static_cast<unsigned long long>(transition));
  return EventPrefix(id) + number.data();
}

void AddEvents(const std::string& id, const Record& record, const std::vector<Change>& changes,
               store::Transaction& transaction) {
  if (changes.empty()) return;
  transaction.then.push_back(
      store::Operation::Put(EventKey(id, record.transitions), ChangesJson(changes)));
  if (record.transitions > kKeptTransitions) {
    transaction.then.push_back(
        store::Operation::Delete(EventKey(id, record.transitions - kKeptTransitions)));
  }
}

}  // namespace

std::string PrefixOf(const std::string& id) { return std::string(kMigrationPrefix) + id + "/"; }
std::string HeadKey(const std::string& id) { return PrefixOf(id) + "head"; }
std::string ClusterKey(const std::string& cluster) { return "migration-cluster/" + cluster; }
std::string EventPrefix(const std::string& id) { return "migration-events/" + id + "/"; }

std::string IdOfKey(std::string_view key) {
  if (!key.starts_with(kMigrationPrefix)) return {};
  key.remove_prefix(kMigrationPrefix.size());
  return std::string(key.substr(0, key.find('/')));
}

StoredMigration ReadMigration(const std::string& id, const std::vector<store::Entry>& entries,
                              std::string& problem) {
  StoredMigration stored{.id = id};
  problem.clear();
  const std::string plan_key = PrefixOf(id) + "plan";
  const std::string* head = nullptr;
  const std::string* plan = nullptr;
  std::vector<std::string> rows;
  for (const store::Entry& entry : entries) {
    if (entry.key == HeadKey(id)) {
      head = &entry.value;
      stored.revision = entry.mod_revision;
      stored.created = entry.create_revision;
    } else if (entry.key == plan_key) {
      plan = &entry.value;
    } else if (entry.key == RowKey(id, static_cast<uint32_t>(rows.size()))) {
      rows.push_back(entry.value);
    }
  }
  if (head == nullptr || plan == nullptr) {
    problem = "its rows are not complete";
    return stored;
  }
  stored.plan = migration::ReadPlan(*plan, problem);
  if (problem.empty()) stored.record = migration::ReadRecord(stored.plan, *head, rows, problem);
  return stored;
}

bool HasEnded(const Record& record) {
  return record.state == MigrationState::kFinalized ||
         record.state == MigrationState::kRolledBack || record.state == MigrationState::kAborted;
}

StoredStep StepAfter(const StoredMigration& stored, const migration::Event& event, int64_t now) {
  StoredStep step{.after = stored.record};
  step.transition = migration::Handle(stored.plan, step.after, event, now);
  const migration::Transition& transition = step.transition;
  step.idle = std::holds_alternative<migration::Tick>(event) && transition.changes.empty() &&
              transition.touched.empty() && transition.intents.empty();
  step.transaction.compares = {store::Compare::ModifiedAt(HeadKey(stored.id), stored.revision)};
  step.transaction.then = {
      store::Operation::Put(HeadKey(stored.id), migration::RecordHeadJson(step.after))};
  std::optional<uint32_t> last;
  for (const uint32_t node : transition.touched) {
    const uint32_t row = node / migration::kNodesPerRow;
    if (row == last) continue;
    last = row;
    step.transaction.then.push_back(
        store::Operation::Put(RowKey(stored.id, row), migration::NodeRowJson(step.after, row)));
  }
  AddEvents(stored.id, step.after, transition.changes, step.transaction);
  // An aborted migration that goes back needs its cluster, which may have a later migration. The
  // row is written too: a creation that has read this migration as ended compares the row's
  // revision.
  if (HasEnded(stored.record) && !HasEnded(step.after)) {
    const std::string cluster = ClusterKey(stored.plan.cluster);
    step.transaction.compares.push_back(store::Compare::HasValue(cluster, stored.id));
    step.transaction.then.push_back(store::Operation::Put(cluster, stored.id));
  }
  return step;
}

store::Transaction CreationOf(const StoredMigration& stored,
                              const migration::Transition& transition,
                              store::Revision cluster_revision) {
  store::Transaction transaction;
  transaction.compares = {
      store::Compare::Absent(HeadKey(stored.id)),
      store::Compare::ModifiedAt(ClusterKey(stored.plan.cluster), cluster_revision)};
  transaction.then = {
      store::Operation::Put(HeadKey(stored.id), migration::RecordHeadJson(stored.record)),
      store::Operation::Put(PrefixOf(stored.id) + "plan", migration::PlanJson(stored.plan)),
      store::Operation::Put(ClusterKey(stored.plan.cluster), stored.id)};
  for (uint32_t row = 0; row < migration::RowsFor(stored.record.nodes.size()); ++row) {
    transaction.then.push_back(
        store::Operation::Put(RowKey(stored.id, row), migration::NodeRowJson(stored.record, row)));
  }
  AddEvents(stored.id, stored.record, transition.changes, transaction);
  return transaction;
}

store::Transaction DeletionOf(const StoredMigration& stored) {
  store::Transaction transaction;
  transaction.compares = {store::Compare::ModifiedAt(HeadKey(stored.id), stored.revision)};
  transaction.then = {store::Operation::Delete(HeadKey(stored.id)),
                      store::Operation::Delete(PrefixOf(stored.id) + "plan")};
  for (uint32_t row = 0; row < migration::RowsFor(stored.record.nodes.size()); ++row)
    transaction.then.push_back(store::Operation::Delete(RowKey(stored.id, row)));
  return transaction;
}

std::string ChangesJson(const std::vector<Change>& changes) {
  Json list = Json::array();
  for (const Change& change : changes) {
    list.push_back({change.number, change.time, change.who, change.subject, change.before,
                    change.after, change.reason, change.request_id, change.output_digest});
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<Change> ReadChanges(const std::string& text) {
  std::vector<Change> changes;
  try {
    for (const Json& row : Json::parse(text)) {
      Change change;
      row.at(0).get_to(change.number);
      row.at(1).get_to(change.time);
      row.at(2).get_to(change.who);
      row.at(3).get_to(change.subject);
      row.at(4).get_to(change.before);
      row.at(5).get_to(change.after);
      row.at(6).get_to(change.reason);
      row.at(7).get_to(change.request_id);
      row.at(8).get_to(change.output_digest);
      changes.push_back(std::move(change));
    }
  } catch (const std::exception&) {
    return {};
  }
  return changes;
}

}  // namespace rocegw::migrations
