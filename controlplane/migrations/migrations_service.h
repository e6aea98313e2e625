// SPDX-License-Identifier: Apache-2.0
// admin.v1.Migrations. An order of a person is one transaction: the transition that the pure
// controller makes of it, its audit record, and a record of its request_id. The driver finds the
// result in the store, also when another controller took the order. gRPC's and the store's threads.
#pragma once

#include <functional>

#include "controlplane/api/services/standard_service.h"
#include "controlplane/migrations/gates/gate_source.h"
#include "controlplane/migrations/nodes/node_access.h"
#include "controlplane/migrations/order_call.h"
#include "controlplane/migrations/verify_call.h"
#include "rocegw/admin/v1/migrations.grpc.pb.h"

namespace rocegw::migrations {

class MigrationsService final : public admin::v1::Migrations::CallbackService {
 public:
  // Migrations that a store keeps.
  static constexpr size_t kMost = 64;

  // `nodes` outlives the service.
  MigrationsService(const api::Backend& backend, const GateSource& gates, NodeAccess& nodes,
                    Upgraded upgraded)
      : backend_(backend), gates_(gates), nodes_(nodes), upgraded_(std::move(upgraded)) {}

  grpc::ServerUnaryReactor* CreateMigration(grpc::CallbackServerContext* context,
                                            const admin::v1::CreateMigrationRequest* request,
                                            admin::v1::Migration* response) override;
  grpc::ServerUnaryReactor* GetMigration(grpc::CallbackServerContext* context,
                                         const admin::v1::GetMigrationRequest* request,
                                         admin::v1::Migration* response) override;
  grpc::ServerUnaryReactor* ListMigrations(grpc::CallbackServerContext* context,
                                           const admin::v1::ListMigrationsRequest* request,
                                           admin::v1::ListMigrationsResponse* response) override;
  grpc::ServerUnaryReactor* ListMigrationEvents(
      grpc::CallbackServerContext* context, const admin::v1::ListMigrationEventsRequest* request,
      admin::v1::ListMigrationEventsResponse* response) override;
  grpc::ServerUnaryReactor* ApproveWave(grpc::CallbackServerContext* context,
                                        const admin::v1::ApproveWaveRequest* request,
                                        admin::v1::Migration* response) override;
  grpc::ServerUnaryReactor* ControlMigration(grpc::CallbackServerContext* context,
                                             const admin::v1::ControlMigrationRequest* request,
                                             admin::v1::Migration* response) override;
  grpc::ServerUnaryReactor* SetMigrationLimits(grpc::CallbackServerContext* context,
                                               const admin::v1::SetMigrationLimitsRequest* request,
                                               admin::v1::Migration* response) override;
  grpc::ServerUnaryReactor* VerifyMigration(grpc::CallbackServerContext* context,
                                            const admin::v1::VerifyMigrationRequest* request,
                                            admin::v1::VerifyMigrationResponse* response) override;
  grpc::ServerUnaryReactor* DeleteMigration(grpc::CallbackServerContext* context,
                                            const admin::v1::DeleteMigrationRequest* request,
                                            admin::v1::DeleteMigrationResponse* response) override;

 private:
  template <typename Request>
  grpc::ServerUnaryReactor* Give(grpc::CallbackServerContext& context, const Request& request,
                                 admin::v1::Migration* response,
                                 std::function<OrderOrError(const StoredMigration&)> order);

  const api::Backend& backend_;
  const GateSource& gates_;
  NodeAccess& nodes_;
  const Upgraded upgraded_;
  Verifications verifications_;
};

}  // namespace rocegw::migrations
