// SPDX-License-Identifier: Apache-2.0
// Target that only records its calls, and objects to apply to it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gateway/apply/engine.h"

namespace rocegw::apply {

class FakeTarget : public Target {
 public:
  void SetGateway(const GatewaySettings& settings, const tenant::Amounts& amounts) override {
    gateway = settings;
    capacity = amounts;
  }
  void SetTenant(const tenant::TenantSettings& settings) override {
    said.push_back("set " + settings.name);
    tenants[settings.name] = settings;
  }
  void RemoveTenant(const std::string& name) override {
    for (const auto& [pool, settings] : pools) EXPECT_NE(tenant::TenantOf(pool), name);
    said.push_back("remove " + name);
    EXPECT_EQ(tenants.erase(name), 1u);
  }
  std::optional<Wrong> CheckPool(const tenant::PoolSettings& settings) override {
    if (refused.contains(settings.name)) return Wrong{"ADDRESS_NOT_HERE", "not here"};
    return std::nullopt;
  }
  std::optional<Wrong> MakeSockets(const tenant::PoolSettings& settings) override {
    if (without_sockets.contains(settings.name)) return Wrong{"SOCKET_FAILED", "no room"};
    sockets[settings.name] = std::max(sockets[settings.name], settings.slots);
    return std::nullopt;
  }
  void DropSockets(const std::string& pool) override {
    EXPECT_FALSE(pools.contains(pool));
    EXPECT_EQ(sockets.erase(pool), 1u);
  }
  void SetPool(const tenant::PoolSettings& settings) override {
    EXPECT_TRUE(tenants.contains(tenant::TenantOf(settings.name))) << settings.name;
    said.push_back("set " + settings.name);
    pools[settings.name] = settings;
    if (!without_sockets.contains(settings.name)) sockets[settings.name] = settings.slots;
  }
  void RemovePool(const std::string& name) override {
    said.push_back("remove " + name);
    EXPECT_EQ(pools.erase(name), 1u);
    sockets.erase(name);
  }

  void SetPeer(const std::string& name, const std::vector<wire::Gid>& addresses) override {
    if (addresses.empty()) {
      peers.erase(name);
    } else {
      peers[name] = addresses;
    }
  }

  std::map<std::string, std::vector<wire::Gid>> peers;
  GatewaySettings gateway;
  tenant::Amounts capacity;
  std::map<std::string, tenant::TenantSettings> tenants;
  std::map<std::string, tenant::PoolSettings> pools;
  std::map<std::string, uint32_t> sockets;  // number of slots with a socket, by pool
  std::set<std::string> refused;
  std::set<std::string> without_sockets;
  std::vector<std::string> said;
};

inline types::v1::ConfigObject GatewayObject(uint64_t qps = 0, const std::string& name = "g") {
  types::v1::ConfigObject object;
  object.set_name("gateways/" + name);
  object.mutable_gateway()->set_name(object.name());
  if (qps != 0) object.mutable_gateway()->mutable_capacity()->set_qps(qps);
  return object;
}

inline types::v1::ConfigObject TenantObject(const std::string& id, uint64_t peak_qps = 0) {
  types::v1::ConfigObject object;
  object.set_name("tenants/" + id);
  object.mutable_tenant()->set_name(object.name());
  if (peak_qps != 0) object.mutable_tenant()->mutable_quota()->mutable_peak()->set_qps(peak_qps);
  return object;
}

inline types::v1::ConfigObject PoolObject(const std::string& tenant, const std::string& id,
                                          uint64_t committed_qps = 0) {
  types::v1::ConfigObject object;
  object.set_name("tenants/" + tenant + "/pools/" + id);
  object.mutable_pool()->set_name(object.name());
  object.mutable_pool()->set_uid("uid-" + id);
  types::v1::PoolSpec& spec = *object.mutable_pool()->mutable_spec();
  if (committed_qps != 0) spec.mutable_quota()->mutable_committed()->set_qps(committed_qps);
  return object;
}

inline types::v1::ConfigObject PolicyObject(const std::string& id, uint64_t window) {
  types::v1::ConfigObject object;
  object.set_name("ccPolicies/" + id);
  object.mutable_cc_policy()->set_name(object.name());
  object.mutable_cc_policy()->set_window_bytes(window);
  return object;
}

inline types::v1::ConfigObject Removal(const std::string& name) {
  types::v1::ConfigObject object;
  object.set_name(name);
  object.set_removed(true);
  return object;
}

}  // namespace rocegw::apply
