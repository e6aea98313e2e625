// SPDX-License-Identifier: Apache-2.0
// Rows of a migration in the store. The plan is one row that never changes; the record is a head
// and rows of nodes; each transition that changes a state adds one row of events. A transition is
// one transaction that compares the head's revision, so that two writers cannot both go on from one
// record. Pure except for reading; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/migration/drive/controller.h"
#include "controlplane/store/store.h"

namespace rocegw::migrations {

// A transition of all nodes fits one transaction of the store.
inline constexpr size_t kMostDrivenNodes = 1000;
// Transitions whose events are kept.
inline constexpr uint64_t kKeptTransitions = 4096;
inline constexpr std::string_view kMigrationPrefix = "migration/";

struct StoredMigration {
  std::string id;  // "m" of "migrations/m"
  migration::Plan plan;
  migration::Record record;
  store::Revision revision = 0;  // the head's
  store::Revision created = 0;   // revision of the creation; tells migrations of one name apart
};

// "migration/M/": prefix of all rows but the events.
std::string PrefixOf(const std::string& id);
std::string HeadKey(const std::string& id);
// Row whose value is the id of the cluster's latest migration: two of one cluster exclude each
// other.
std::string ClusterKey(const std::string& cluster);
std::string EventPrefix(const std::string& id);

// Returns the id of a key below kMigrationPrefix; empty: another key.
std::string IdOfKey(std::string_view key);

// Puts a migration together from all entries below its prefix. `problem`: why they are none, one
// line; empty: they are.
StoredMigration ReadMigration(const std::string& id, const std::vector<store::Entry>& entries,
                              std::string& problem);

// Returns true if nothing of it is driven any more.
bool HasEnded(const migration::Record& record);

struct StoredStep {
  migration::Record after;
  migration::Transition transition;
  // Without the caller's audit record and fence.
  store::Transaction transaction;
  // A tick that changed nothing: nothing needs to be stored.
  bool idle = false;
};
// Handles the event on a copy of the record and makes the transaction for the result. A step that
// brings an ended migration back fails if its cluster has a later one.
StoredStep StepAfter(const StoredMigration& stored, const migration::Event& event, int64_t now);

// Makes the transaction of a new migration, whose revision is 0. `cluster_revision`: revision of
// the row that names the cluster's newest migration, 0 if there is none. The transaction fails if
// that row has changed: two migrations of one cluster exclude each other.
store::Transaction CreationOf(const StoredMigration& stored,
                              const migration::Transition& transition,
                              store::Revision cluster_revision);

// Makes the transaction that deletes an ended migration but for its events.
store::Transaction DeletionOf(const StoredMigration& stored);

std::string ChangesJson(const std::vector<migration::Change>& changes);
// Reads a row of events; a row that is not understood gives none.
std::vector<migration::Change> ReadChanges(const std::string& json);

}  // namespace rocegw::migrations
