// SPDX-License-Identifier: Apache-2.0
// gRPC services of the controller and the parts that they share: all of it needs an open store. The
// members are destroyed in reverse order. Threads: those of the members.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "controlplane/api/nodes/enrollment.h"
#include "controlplane/api/nodes/node_service.h"
#include "controlplane/api/questions/replica_service.h"
#include "controlplane/api/services/audit_service.h"
#include "controlplane/api/services/cc_policies_service.h"
#include "controlplane/api/services/gateways_service.h"
#include "controlplane/api/services/operations_service.h"
#include "controlplane/api/services/pools_service.h"
#include "controlplane/api/services/role_bindings_service.h"
#include "controlplane/api/services/tenants_service.h"
#include "controlplane/donors/host_donors_service.h"
#include "controlplane/donors/share_keeper.h"
#include "controlplane/identity/certificate_authority.h"
#include "controlplane/identity/fleet_key_schedule.h"
#include "controlplane/identity/revocations.h"
#include "controlplane/migrations/gates/prometheus_gates.h"
#include "controlplane/migrations/migrations_service.h"
#include "controlplane/migrations/nodes/fleet_nodes.h"
#include "controlplane/sync/connection_keeper.h"
#include "controlplane/sync/operation_keeper.h"
#include "controlplane/upgrades/fleet_hosts.h"
#include "controlplane/upgrades/upgrades_service.h"
#include "gateway/base/status.h"

namespace rocegw::server {

struct FleetServices {
  // The store and the authority outlive the object. `id`: of this controller (ReplicaId).
  FleetServices(store::Store& store, const std::string& id,
                std::unique_ptr<sync::FleetFollower> the_follower,
                std::unique_ptr<identity::Revocations> the_revocations,
                const identity::CertificateAuthority& authority, api::EnrollmentOptions options,
                identity::FleetKeySchedule key_schedule, api::Replicas::ChannelTo channel_to,
                migrations::PrometheusSettings prometheus,
                std::vector<std::string> approved_donors);

  // Returns the services that a server registers.
  std::vector<grpc::Service*> services();
  // Returns the names of the services at the health service.
  static std::span<const char* const> names();
  // Ends the streams of agents and the questions to other controllers, before the server stops.
  void CloseStreams();
  // Returns an error while the store cannot be followed, so that answers would be old.
  Status Followed() const;

  std::unique_ptr<sync::FleetFollower> follower;
  std::unique_ptr<identity::Revocations> revocations;
  api::Writer writer;
  api::Backend backend;
  sync::StatusWriter statuses;
  sync::OperationKeeper operation_keeper;
  sync::ConnectionKeeper connection_keeper;
  sync::NodeHub hub;
  sync::TunnelHub tunnels;
  api::Replicas other_controllers;
  api::QuestionRouter router;
  api::Enrollment enrollment;
  const identity::FleetKeySchedule keys;
  api::TenantsService tenants;
  api::PoolsService pools;
  api::CcPoliciesService cc_policies;
  api::RoleBindingsService role_bindings;
  api::GatewaysService gateways;
  api::OperationsService operations;
  api::AuditService audit;
  migrations::PrometheusGates gates;
  migrations::FleetNodes migration_nodes;
  migrations::MigrationsService migrations;
  upgrades::UpgradesService upgrades;
  upgrades::FleetHosts upgrade_hosts;
  api::NodeService nodes;
  api::ReplicaService replicas;
  donors::DonorReports donor_reports;
  donors::ShareKeeper share_keeper;
  donors::SearchCounts donor_searches;
  donors::DonorsService donors;
  donors::HostDonorsService host_donors;
};

}  // namespace rocegw::server
