// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/nodes/node_call.h"

namespace rocegw::migrations {

fleet::v1::MigrationCall CallFor(const StoredMigration& stored, uint32_t node,
                                 const std::string& call) {
  const migration::PlannedNode& planned = stored.plan.nodes[node];
  fleet::v1::MigrationCall asked;
  asked.set_migration("migrations/" + stored.id);
  asked.set_incarnation(stored.created);
  asked.set_epoch(stored.record.epoch);
  asked.set_adapter(stored.plan.adapter);
  asked.set_call(call);
  asked.set_cluster(stored.plan.cluster);
  asked.set_node(planned.name);
  asked.set_from(std::string(WordOf(planned.from)));
  asked.set_to(std::string(WordOf(stored.plan.target)));
  return asked;
}

}  // namespace rocegw::migrations
