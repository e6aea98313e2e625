// SPDX-License-Identifier: Apache-2.0
// admin.v1.Upgrades. An order of a person is one transaction; the driver finds the result in the
// store, also when another controller took the order. gRPC's and the store's threads.
#pragma once

#include <utility>

#include "controlplane/api/services/standard_service.h"
#include "controlplane/upgrades/upgrade_calls.h"
#include "rocegw/admin/v1/upgrades.grpc.pb.h"

namespace rocegw::upgrades {

class UpgradesService final : public admin::v1::Upgrades::CallbackService {
 public:
  // Upgrades that a store keeps.
  static constexpr size_t kMost = 64;

  UpgradesService(const api::Backend& backend, Migrated migrated)
      : backend_(backend), migrated_(std::move(migrated)) {}

  grpc::ServerUnaryReactor* CreateUpgrade(grpc::CallbackServerContext* context,
                                          const admin::v1::CreateUpgradeRequest* request,
                                          admin::v1::Upgrade* response) override;
  grpc::ServerUnaryReactor* GetUpgrade(grpc::CallbackServerContext* context,
                                       const admin::v1::GetUpgradeRequest* request,
                                       admin::v1::Upgrade* response) override;
  grpc::ServerUnaryReactor* ListUpgrades(grpc::CallbackServerContext* context,
                                         const admin::v1::ListUpgradesRequest* request,
                                         admin::v1::ListUpgradesResponse* response) override;
  grpc::ServerUnaryReactor* ControlUpgrade(grpc::CallbackServerContext* context,
                                           const admin::v1::ControlUpgradeRequest* request,
                                           admin::v1::Upgrade* response) override;
  grpc::ServerUnaryReactor* DeleteUpgrade(grpc::CallbackServerContext* context,
                                          const admin::v1::DeleteUpgradeRequest* request,
                                          admin::v1::DeleteUpgradeResponse* response) override;

 private:
  const api::Backend& backend_;
  const Migrated migrated_;
};

}  // namespace rocegw::upgrades
