// SPDX-License-Identifier: Apache-2.0
// Audit records of the transitions of migrations. Pure except for the clock; any thread.
#pragma once

#include <string>

#include "controlplane/migration/drive/events.h"
#include "controlplane/store/transaction.h"

namespace rocegw::migrations {

// Returns the record of all changes of a transition. `peer`: host and process of the controller
// that made it, or what a person's call came from.
store::Operation AuditOfChanges(const std::string& id, const std::string& peer,
                                const migration::Transition& transition);

}  // namespace rocegw::migrations
