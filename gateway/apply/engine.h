// SPDX-License-Identifier: Apache-2.0
// The configuration that a gateway runs, and how it changes: pushes from a controller by way of the
// agent, else the static configuration. Each object is accepted or rejected singly; one that is
// rejected keeps its old version. What a push would commit together is looked at before anything is
// changed, so the order of objects in it does not matter. The last good state is kept in a file and
// is what runs after a restart; the static configuration runs until something was applied for the
// first time. A push of another store, or one that is older than what runs, changes nothing until
// the operator has said so (UNADOPTED). Owner: the daemon, control thread; acts on a Target.
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

// The running gateway, as far as configuration changes it.
class Target {
 public:
  virtual ~Target() = default;

  virtual void SetGateway(const GatewaySettings& settings, const tenant::Amounts& capacity) = 0;
  virtual void SetTenant(const tenant::TenantSettings& settings) = 0;
  virtual void RemoveTenant(const std::string& name) = 0;
  // Whether the pool can be on this machine as it is now: addresses, owners of sockets. Asked
  // before anything is changed.
  virtual std::optional<Wrong> CheckPool(const tenant::PoolSettings& settings) = 0;
  // The pool's attach sockets, beside those that it has; or why not, and all is as it was. Asked
  // for before the pool is changed. SetPool follows, with these settings or the former ones, or
  // DropSockets where there was no pool.
  virtual std::optional<Wrong> MakeSockets(const tenant::PoolSettings& settings) = 0;
  virtual void DropSockets(const std::string& pool) = 0;
  virtual void SetPool(const tenant::PoolSettings& settings) = 0;
  virtual void RemovePool(const std::string& name) = 0;
  // Another gateway of the fleet; no addresses: it is gone.
  virtual void SetPeer(const std::string& name, const std::vector<wire::Gid>& addresses) = 0;
};

struct Facts {
  std::string gateway;       // "gateways/G"
  tenant::Amounts capacity;  // by its own configuration
  std::string state_file;    // empty: none
};

class Engine {
 public:
  // `wall_ns`: time since 1970, for reports. The target outlives the engine.
  Engine(Facts facts, Target& target, std::function<int64_t()> wall_ns);

  // Once, before anything else: the state of the file, else `objects`. An object that cannot be
  // applied is among the rejections. An error tells that a file is there that cannot be used; the
  // static configuration runs then.
  Status Start(const std::vector<types::v1::ConfigObject>& objects);

  types::v1::PushReport Apply(const types::v1::Push& push);
  // Pools whose sockets could not be made may have them later, when somebody has mended the host:
  // they are tried again as long as nothing newer is said of them.
  bool has_waiting() const { return !waiting_.empty(); }
  // How many do not wait any more.
  size_t Retry();
  void Describe(gateway::v1::GetConfigResponse& out) const;

  const std::string& source() const { return source_; }
  int64_t revision() const { return revision_; }
  // Why the last state could not be written; empty: it was.
  const std::string& write_problem() const { return write_problem_; }

 private:
  using Objects = std::map<std::string, types::v1::ConfigObject>;
  using Rejections = std::map<std::string, types::v1::Rejection>;
  struct Plan;

  types::v1::PushReport Report(const types::v1::Push& push, types::v1::PushStatus status) const;
  // Takes up a part of a push; true: it was the last.
  bool Stage(const types::v1::Push& push);
  // Works out what is accepted, then carries it out.
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
  std::string source_ = "static";  // or the store's uuid
  int64_t revision_ = 0;
  Objects objects_;
  Rejections rejections_;
  Objects waiting_;  // as they were wanted
  std::optional<types::v1::Push> staged_;
  std::string write_problem_;
  bool restoring_ = false;
};

}  // namespace rocegw::apply
