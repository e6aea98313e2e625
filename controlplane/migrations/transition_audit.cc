// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/transition_audit.h"

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/migrations/stored_migration.h"

namespace rocegw::migrations {

store::Operation AuditOfChanges(const std::string& id, const std::string& peer,
                                const migration::Transition& transition) {
  const api::Call call{.principal = "controller",
                       .peer = peer,
                       .method = "migration",
                       .request_id = {},
                       .request_digest = {},
                       .request_json = ChangesJson(transition.changes),
                       .etag_before = {}};
  return api::AuditOf(call, "migrations/" + id);
}

}  // namespace rocegw::migrations
