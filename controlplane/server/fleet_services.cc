// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/fleet_services.h"

#include <utility>

#include "controlplane/server/migrated_gateways.h"
#include "controlplane/upgrades/upgrading_gateways.h"

namespace rocegw::server {
namespace {

constexpr const char* kServiceNames[] = {
    "rocegw.admin.v1.Tenants",      "rocegw.admin.v1.Pools",          "rocegw.admin.v1.CcPolicies",
    "rocegw.admin.v1.RoleBindings", "rocegw.admin.v1.Gateways",       "rocegw.admin.v1.Operations",
    "rocegw.admin.v1.Audit",        "rocegw.admin.v1.Migrations",     "rocegw.admin.v1.Upgrades",
    "rocegw.fleet.v1.NodeService",  "rocegw.fleet.v1.ReplicaService", "rocegw.admin.v1.Donors",
    "rocegw.fleet.v1.DonorService"};

}  // namespace

FleetServices::FleetServices(
    store::Store& store, const std::string& id, std::unique_ptr<sync::FleetFollower> the_follower,
    std::unique_ptr<identity::Revocations> the_revocations,
    const identity::CertificateAuthority& authority, api::EnrollmentOptions options,
    identity::FleetKeySchedule key_schedule, api::Replicas::ChannelTo channel_to,
    migrations::PrometheusSettings prometheus, std::vector<std::string> approved_donors)
    : follower(std::move(the_follower)),
      revocations(std::move(the_revocations)),
      writer(store, *follower),
      backend{store, *follower, writer},
      statuses(store),
      operation_keeper(*follower, statuses),
      connection_keeper(*follower, statuses, id),
      hub(*follower, statuses, store.uuid(), {.controller = id}),
      other_controllers(*follower, id, std::move(channel_to)),
      router(tunnels, other_controllers),
      enrollment(store, *follower, authority, std::move(options)),
      keys(std::move(key_schedule)),
      tenants(backend),
      pools(backend, router),
      cc_policies(backend),
      role_bindings(backend),
      gateways(backend, hub, other_controllers, router, enrollment),
      operations(backend),
      audit(backend),
      gates(std::move(prometheus)),
      migration_nodes(*follower, router, enrollment.node_lifetime()),
      migrations(
          backend, gates, migration_nodes,
          {.prefix = std::string(upgrades::kUpgradePrefix), .read = upgrades::UpgradingGateways}),
      upgrades(backend,
               {.prefix = std::string(migrations::kMigrationPrefix), .read = MigratedGateways}),
      upgrade_hosts(*follower, router),
      nodes(enrollment,
            {.backend = backend, .hub = hub, .tunnels = tunnels, .revocations = *revocations},
            keys),
      replicas(*follower, tunnels, hub),
      donor_reports(*follower, statuses, id),
      share_keeper(store, *follower, id),
      donors(backend, donor_searches),
      host_donors(backend, donor_reports, donor_searches, std::move(approved_donors)) {
  backend.usage = &hub.usage();
}

std::vector<grpc::Service*> FleetServices::services() {
  return {&tenants,    &pools,    &cc_policies, &role_bindings, &gateways, &operations, &audit,
          &migrations, &upgrades, &nodes,       &replicas,      &donors,   &host_donors};
}

std::span<const char* const> FleetServices::names() { return kServiceNames; }

void FleetServices::CloseStreams() {
  hub.CloseAll(sync::StreamEnd::kClosing);
  other_controllers.Close();
  router.Close();
}

Status FleetServices::Followed() const {
  if (const Status status = follower->status(); !status.ok())
    return {status.error(), "the store cannot be followed: " + status.text()};
  if (const Status status = revocations->status(); !status.ok())
    return {status.error(), "revocations cannot be followed: " + status.text()};
  return OkStatus();
}

}  // namespace rocegw::server
