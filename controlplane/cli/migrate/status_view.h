// SPDX-License-Identifier: Apache-2.0
// Views of migrations that a controller drives. The status answers four questions in at most 80
// columns: where is it, what is next, what is it waiting for, what would stop it.
#pragma once

#include <string>

#include "rocegw/admin/v1/migrations.pb.h"

namespace rocegw::cli {

// `limit`: characters per line of tables, 0: none.
std::string MigrationStatusText(const admin::v1::Migration& migration, size_t limit);
std::string MigrationListText(const admin::v1::ListMigrationsResponse& list, size_t limit);
// Report of a migration, Markdown.
std::string MigrationReportText(const admin::v1::Migration& migration,
                                const admin::v1::ListMigrationEventsResponse& events);

}  // namespace rocegw::cli
