// SPDX-License-Identifier: Apache-2.0
// Adapter between the configuration engine and the session layer: looks up owners of sockets, and
// refuses what this machine does not have before anything is changed. Control thread.
#pragma once

#include <string>

#include "gateway/apply/engine.h"
#include "gateway/session/session_server.h"

namespace rocegw::daemon {

class ConfigTarget final : public apply::Target {
 public:
  // `slots_dir`: as in the sessions' options. The sessions outlive the target.
  ConfigTarget(session::SessionServer& sessions, std::string slots_dir)
      : sessions_(sessions), slots_dir_(std::move(slots_dir)) {}

  void SetGateway(const apply::GatewaySettings& settings, const tenant::Amounts& capacity) override;
  void SetTenant(const tenant::TenantSettings& settings) override;
  void RemoveTenant(const std::string& name) override;
  std::optional<apply::Wrong> CheckPool(const tenant::PoolSettings& settings) override;
  std::optional<apply::Wrong> MakeSockets(const tenant::PoolSettings& settings) override;
  void DropSockets(const std::string& pool) override { sessions_.DropSlots(pool); }
  void SetPool(const tenant::PoolSettings& settings) override;
  void RemovePool(const std::string& name) override;
  void SetPeer(const std::string& name, const std::vector<wire::Gid>& addresses) override {
    sessions_.SetPeer(name, addresses);
  }

 private:
  std::optional<apply::Wrong> CheckReserve(const tenant::PoolSettings& settings);

  session::SessionServer& sessions_;
  const std::string slots_dir_;
};

}  // namespace rocegw::daemon
