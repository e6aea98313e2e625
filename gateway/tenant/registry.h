// SPDX-License-Identifier: Apache-2.0
// Tenants and pools that this gateway serves, and what they hold. A pool that is removed while
// programs are attached to it stays, without name and without limits to grow into, until the last
// of them has gone; its tenant stays as long. Owner: the session layer, control thread. Addresses
// of pools are stable.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/metrics/duration_histogram.h"
#include "gateway/tenant/amounts.h"
#include "gateway/tenant/attach_outcome.h"
#include "gateway/tenant/quota_node.h"
#include "gateway/tenant/settings.h"
#include "gateway/tenant/share.h"

namespace rocegw::tenant {

// Resources, then rates.
inline constexpr size_t kLimits = kResources + kRates;
constexpr std::string_view LimitName(size_t limit) {
  return limit < kResources ? kResourceNames[limit] : kRateNames[limit - kResources];
}

class Tenant {
 public:
  Tenant(const std::string& name, QuotaNode& gateway, Share& gateway_share)
      : quota_(name, Level::kTenant, &gateway), share_(&gateway_share) {}

  const TenantSettings& settings() const { return settings_; }
  const QuotaNode& quota() const { return quota_; }

 private:
  friend class Pool;
  friend class Registry;
  void Set(TenantSettings settings);

  TenantSettings settings_;
  QuotaNode quota_;
  Share share_;
};

// Why something was not granted.
struct Refusal {
  std::string_view limit;
  Level level = Level::kPool;  // whose limit it is
  std::string text;            // one line for a person, names pool and limit
};

class Pool {
 public:
  Pool(uint64_t id, PoolSettings settings, std::shared_ptr<Tenant> tenant);

  // Counts up; of no other pool ever.
  uint64_t id() const { return id_; }
  const PoolSettings& settings() const { return settings_; }
  const std::string& name() const { return settings_.name; }
  const Tenant& tenant() const { return *tenant_; }
  // Not in the configuration any more.
  bool leaving() const { return leaving_; }

  // Nothing: granted, together with the heap that such objects cost (heap_cost.h). What is refused
  // is counted.
  std::optional<Refusal> Take(Resource resource, uint64_t amount = 1);
  void Give(Resource resource, uint64_t amount = 1);
  // What Take would answer; counted as well.
  std::optional<Refusal> Check(Resource resource, uint64_t amount);
  uint64_t Left(Resource resource) const { return quota_.Left(resource); }
  std::optional<Refusal> TakeConnect(TimePoint now);

  // For the workers that serve its sessions.
  Share& share() { return share_; }
  const Share& share() const { return share_; }

  uint64_t used(Resource resource) const { return quota_.used(resource); }
  // The most that this pool can ever get as things are: the smallest of the peaks above it.
  uint64_t Peak(Resource resource) const;
  // How often something was refused, or held back, for that limit.
  uint64_t refused(size_t limit) const;
  // A worker refused a channel, since that node's limit is reached; counted there.
  Refusal ChannelRefused(const QuotaNode* by) const;
  // A worker holds back what the pool's programs send, since that node's rate is used up.
  Refusal HeldBack(Rate rate, const RateNode* by) const;

  bool MayTalkTo(const wire::Gid& peer) const {
    return wire::Contain(tenant_->settings().allowed_peers, peer) &&
           wire::Contain(settings_.allowed_peers, peer);
  }
  void CountAttach(AttachOutcome outcome) { ++attaches_[static_cast<size_t>(outcome)]; }
  const AttachCounts& attaches() const { return attaches_; }
  void CountPeerRefused(uint64_t times = 1) { peers_refused_ += times; }
  uint64_t peers_refused() const { return peers_refused_; }
  void CountIdentityRefused() { ++identities_refused_; }
  uint64_t identities_refused() const { return identities_refused_; }
  // One program asked for more than any program may have.
  void CountBoundRefused() { ++bounds_refused_; }
  uint64_t bounds_refused() const { return bounds_refused_; }

  // What the gateway spent on each connected queue pair of the pool, from its creation until it
  // could send.
  metrics::DurationHistogram& set_up() { return set_up_; }
  const metrics::DurationHistogram& set_up() const { return set_up_; }

 private:
  friend class Registry;
  void Set(PoolSettings settings);
  void Leave();
  Refusal Refuse(size_t limit, Level level, const std::string& whose, uint64_t most);
  Refusal Explain(size_t limit, Level level, const std::string& whose, uint64_t most) const;
  // Whose limit, when it is reached on the way up from `own` of this pool.
  static Level LevelOf(const RateNode* by, const RateNode& own, const RateNode& tenants);

  const uint64_t id_;
  PoolSettings settings_;
  std::shared_ptr<Tenant> tenant_;
  QuotaNode quota_;
  Share share_;
  bool leaving_ = false;
  std::array<uint64_t, kLimits> refused_{};
  uint64_t peers_refused_ = 0;
  uint64_t identities_refused_ = 0;
  uint64_t bounds_refused_ = 0;
  AttachCounts attaches_{};
  metrics::DurationHistogram set_up_;
};

class Registry {
 public:
  explicit Registry(const Amounts& capacity);

  void SetCapacity(const Amounts& capacity);
  const Amounts& capacity() const { return capacity_; }
  const QuotaNode& gateway() const { return gateway_; }

  void SetTenant(TenantSettings settings);
  // Its pools are gone or leaving.
  void RemoveTenant(const std::string& name);
  const Tenant* FindTenant(const std::string& name) const;

  // Its tenant is there. A pool of the same name with another uid is another pool: the old one
  // leaves.
  Pool& SetPool(PoolSettings settings);
  void RemovePool(const std::string& name);
  Pool* FindPool(const std::string& name) const;
  // Frees pools that have left: nothing refers to them any more. When a session has ended.
  void Reap();

  // f(pool): those in force, then those leaving.
  template <typename F>
  void ForEachPool(F&& f) const {
    for (const auto& [name, pool] : pools_) f(*pool);
    for (const auto& pool : leaving_) f(*pool);
  }
  template <typename F>
  void ForEachTenant(F&& f) const {
    for (const auto& [name, known] : tenants_) f(*known);
  }

 private:
  Amounts capacity_;
  QuotaNode gateway_;
  Share share_;
  std::map<std::string, std::shared_ptr<Tenant>> tenants_;
  std::map<std::string, std::unique_ptr<Pool>> pools_;
  std::vector<std::unique_ptr<Pool>> leaving_;
  uint64_t next_id_ = 1;
};

}  // namespace rocegw::tenant
