// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/migration_driver.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <set>
#include <utility>

#include "controlplane/model/timestamp.h"

namespace rocegw::migrations {
namespace {

using model::SecondsNow;

// Interval of looks at deadlines and at the nodes.
constexpr std::chrono::milliseconds kPass(500);

}  // namespace

MigrationDriver::MigrationDriver(store::Store& store, NodeAccess& nodes, GateSource& gates,
                                 MigrationBoard& board, std::string candidate)
    : context_{.store = store,
               .nodes = nodes,
               .gates = gates,
               .inbox = std::make_shared<Inbox>(),
               .who = candidate},
      board_(board),
      election_(store, {.key = "election/migrations", .candidate = std::move(candidate)},
                [inbox = context_.inbox](const auto&) { inbox->Wake(); }),
      thread_([this] { Run(); }) {}

MigrationDriver::~MigrationDriver() {
  stopping_ = true;
  context_.inbox->Wake();
  thread_.join();
}

void MigrationDriver::Run() {
  while (!stopping_) {
    context_.inbox->Await(kPass);
    Pass();
    Post();
  }
  StandDown();
  Post();
}

void MigrationDriver::StandDown() {
  watch_.reset();
  driven_.clear();
  term_.reset();
}

void MigrationDriver::Pass() {
  const std::optional<store::Term> term = election_.term();
  if (term_.has_value() && (!term.has_value() || !(*term_ == *term))) StandDown();
  // Answers to the questions of an earlier term decide nothing.
  if (!term.has_value() || (!term_.has_value() && !Lead(*term))) return context_.inbox->Clear();
  FollowChanges();
  while (const std::optional<Arrived> arrived = context_.inbox->Take()) {
    const auto at = driven_.find(arrived->migration);
    if (at != driven_.end()) at->second->OnAnswer(*arrived, SecondsNow());
  }
  for (const auto& [id, driven] : driven_) {
    driven->Proceed(SecondsNow());
    // The election reports the end of the term soon.
    if (driven->lost_term()) return StandDown();
  }
}

void MigrationDriver::Post() {
  MigrationBoard::View view{.drives = term_.has_value(), .migrations = {}};
  for (const auto& [id, driven] : driven_) view.migrations.push_back(SummaryOf(driven->stored()));
  board_.Post(std::move(view));
}

bool MigrationDriver::Lead(const store::Term& term) {
  auto rows = context_.store.Range({.range = store::KeyRange::Prefix(kMigrationPrefix)});
  if (!rows.ok()) {
    spdlog::warn("migrations cannot be read: {}", rows.status().text());
    return false;
  }
  auto watch =
      context_.store.NewWatch(store::KeyRange::Prefix(kMigrationPrefix), rows->revision + 1,
                              [inbox = context_.inbox] { inbox->Wake(); });
  if (!watch.ok()) return false;
  term_ = term;
  watch_ = std::move(*watch);
  std::map<std::string, std::vector<store::Entry>> entries;
  for (store::Entry& entry : rows->entries) entries[IdOfKey(entry.key)].push_back(std::move(entry));
  for (const auto& [id, own] : entries) {
    std::string problem;
    StoredMigration stored = ReadMigration(id, own, problem);
    if (problem.empty()) {
      driven_[id] = std::make_unique<DrivenMigration>(context_, term.fence, std::move(stored));
    } else {
      spdlog::error("migration {} is not driven: {}", id, problem);
    }
  }
  if (!driven_.empty()) spdlog::info("this controller drives {} migrations", driven_.size());
  return true;
}

void MigrationDriver::FollowChanges() {
  std::set<std::string> changed;
  for (;;) {
    auto next = watch_->TryNext();
    if (!next.ok()) return StandDown();
    if (!next->has_value()) break;
    for (const store::Change& change : (*next)->changes) {
      const std::string id = IdOfKey(change.entry.key);
      const auto known = driven_.find(id);
      if (known == driven_.end() || known->second->stored().revision < (*next)->revision)
        changed.insert(id);
    }
  }
  for (const std::string& id : changed) {
    Load(id);
    // Load stands down where the store does not answer.
    if (!term_.has_value()) return;
  }
}

void MigrationDriver::Load(const std::string& id) {
  auto rows = context_.store.Range({.range = store::KeyRange::Prefix(PrefixOf(id))});
  // Everything is read again in the next pass.
  if (!rows.ok()) return StandDown();
  std::string problem;
  StoredMigration stored = ReadMigration(id, rows->entries, problem);
  if (!problem.empty()) {
    driven_.erase(id);
    if (!rows->entries.empty()) spdlog::error("migration {} is not driven: {}", id, problem);
    return;
  }
  const auto known = driven_.find(id);
  if (known != driven_.end()) return known->second->Replace(std::move(stored));
  driven_[id] = std::make_unique<DrivenMigration>(context_, term_->fence, std::move(stored));
}

}  // namespace rocegw::migrations
