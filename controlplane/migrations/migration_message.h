// SPDX-License-Identifier: Apache-2.0
// Migrations as messages of the API. Pure; any thread.
#pragma once

#include "controlplane/migrations/stored_migration.h"
#include "rocegw/admin/v1/migrations.pb.h"

namespace rocegw::migrations {

enum class Detail { kSummary, kWhole };

admin::v1::Migration MessageOf(const StoredMigration& stored, Detail detail, int64_t now);
admin::v1::MigrationEvent MessageOf(const migration::Change& change);

// Returns the knobs with the limits that are set.
migration::Knobs KnobsOf(const migration::Knobs& before, const admin::v1::MigrationLimits& limits);

}  // namespace rocegw::migrations
