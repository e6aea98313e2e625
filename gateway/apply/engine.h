// SPDX-License-Identifier: Apache-2.0
// Configuration engine of a gateway: the running configuration and its changes, by pushes from a
// controller through the agent, or the static configuration. Each object is accepted or rejected
// separately; a rejected object keeps its old version. The combined result of a push is checked
// before anything changes, so the order of its objects does not matter. The last good state is kept
// in a file and runs after a restart; the static configuration runs until something was applied for
// the first time. A push of another store, or one older than the running state, changes nothing
// until the operator adopts it (UNADOPTED). Owner: the daemon, control thread; acts on a Target.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gateway/apply/settings_reader.h"
#include "gateway/base/status.h"
#include "gateway/tenant/commitments.h"
#include "gateway/tenant/settings.h"
#include "rocegw/gateway/v1/config.pb.h"
#include "rocegw/types/v1/push.pb.h"

namespace rocegw::apply {

// Interface to the running gateway, as far as configuration changes it.
class Target {
 public:
  virtual ~Target() = default;

  virtual void SetGateway(const GatewaySettings& settings, const tenant::Amounts& capacity) = 0;
  virtual void SetTenant(const tenant::TenantSettings& settings) = 0;
  virtual void RemoveTenant(const std::string& name) = 0;
  // Checks if this machine can run the pool now: addresses, owners of sockets. Called before
  // anything is changed.
  virtual std::optional<Wrong> CheckPool(const tenant::PoolSettings& settings) = 0;
  // Creates the missing attach sockets of a pool, or changes nothing and returns the reason. Called
  // before the pool is changed. SetPool follows, with these settings or the former ones, or
  // DropSockets if there was no pool.
  virtual std::optional<Wrong> MakeSockets(const tenant::PoolSettings& settings) = 0;
  virtual void DropSockets(const std::string& pool) = 0;
  virtual void SetPool(const tenant::PoolSettings& settings) = 0;
  virtual void RemovePool(const std::string& name) = 0;
  // Sets another gateway of the fleet; no addresses: it was removed.
  virtual void SetPeer(const std::string& name, const std::vector<wire::Gid>& addresses) = 0;
};

struct Facts {
  std::string gateway;       // "gateways/G"
  tenant::Amounts capacity;  // from its own configuration file
  std::string state_file;    // empty: none
};

class Engine {
 public:
  // `wall_ns`: time since 1970, for reports. The target outlives the engine.
  Engine(Facts facts, Target& target, std::function<int64_t()> wall_ns);

  // Starts with the file's state, else with `objects`; call once, first. Objects that cannot be
  // applied are among the rejections. An error means that a file exists but is unusable; then the
  // static configuration runs.
  Status Start(const std::vector<types::v1::ConfigObject>& objects);

  types::v1::PushReport Apply(const types::v1::Push& push);
  // Returns true if pools wait for sockets that could not be created. Retry tries again, since the
  // host may have been mended, until a newer push changes these pools.
  bool has_waiting() const { return !waiting_.empty(); }
  // Returns how many pools do not wait any more.
  size_t Retry();
  void Describe(gateway::v1::GetConfigResponse& out) const;

  const std::string& source() const { return source_; }
  int64_t revision() const { return revision_; }
  // Returns why the last state could not be written; empty: it was written.
  const std::string& write_problem() const { return write_problem_; }

 private:
  using Objects = std::map<std::string, types::v1::ConfigObject>;
  using Rejections = std::map<std::string, types::v1::Rejection>;
  struct Plan;

  types::v1::PushReport Report(const types::v1::Push& push, types::v1::PushStatus status) const;
  // Collects a part of a push. Returns true for the last part.
  bool Stage(const types::v1::Push& push);
  // Determines the accepted changes and carries them out.
  void Carry(std::vector<types::v1::ConfigObject> changes, bool full);
  void CheckReferences(Plan& plan) const;
  std::optional<Wrong> CheckAddresses(const Plan& plan, size_t change) const;
  void CheckCommitments(Plan& plan) const;
  void MakeSockets(Plan& plan);
  void CarryOut(const Plan& plan);
  tenant::PoolSettings PoolOf(const types::v1::PoolConfig& config, const Objects& objects) const;
  void Write();

  const Facts facts_;
  Target& target_;
  const std::function<int64_t()> wall_ns_;
  std::string source_ = "static";  // "static" or the store's uuid
  int64_t revision_ = 0;
  Objects objects_;
  Rejections rejections_;
  Objects waiting_;  // pools that wait, as they were requested
  std::optional<types::v1::Push> staged_;
  std::string write_problem_;
  bool restoring_ = false;
};

}  // namespace rocegw::apply
