// SPDX-License-Identifier: Apache-2.0
// Tenants and pools that this gateway serves, and the amounts that they hold. A pool that is
// removed while programs are attached stays, without name and with no amounts to grow, until the
// last program has detached; its tenant stays as long. Owner: the session layer, control thread.
// Addresses of pools are stable.
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
#include "gateway/tenant/slot_share.h"

namespace rocegw::tenant {

// Number of resources and rates together.
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

// Reason why an amount was not granted.
struct Refusal {
  std::string_view limit;
  Level level = Level::kPool;  // level of the limit
  std::string text;            // line for display, names pool and limit
};

// Counts of a pool since its creation.
struct PoolCounts {
  std::array<uint64_t, kLimits> refused{};  // by LimitName: refused or delayed
  uint64_t peers_refused = 0;
  uint64_t identities_refused = 0;
  uint64_t bounds_refused = 0;
  AttachCounts attaches{};
  uint64_t sent_bytes = 0;  // headers included
  uint64_t sent_packets = 0;
  metrics::DurationHistogram set_up;
  metrics::DurationHistogram operations;
};

class Pool {
 public:
  Pool(uint64_t id, PoolSettings settings, std::shared_ptr<Tenant> tenant);

  // Returns a number that no other pool ever has.
  uint64_t id() const { return id_; }
  const PoolSettings& settings() const { return settings_; }
  const std::string& name() const { return settings_.name; }
  const Tenant& tenant() const { return *tenant_; }
  // Returns true if the pool was removed from the configuration.
  bool leaving() const { return leaving_; }

  // Takes an amount, together with the heap that such objects cost (heap_cost.h). Returns nothing
  // if granted; counts a refusal.
  std::optional<Refusal> Take(Resource resource, uint64_t amount = 1);
  void Give(Resource resource, uint64_t amount = 1);
  // Takes what a program of the pool held in the gateway that this one replaces, whatever the
  // limits are now.
  void Adopt(Resource resource, uint64_t amount = 1);
  // Returns what Take would return, and counts a refusal.
  std::optional<Refusal> Check(Resource resource, uint64_t amount);
  // Counts a queue pair that was refused because the slot's limit is reached.
  Refusal RefuseSlot(const SlotShare& slot);
  uint64_t Left(Resource resource) const { return quota_.Left(resource); }
  // Takes a connection that a program begins, or a request of a peer for one.
  std::optional<Refusal> TakeConnect(TimePoint now) { return TakeRate(&Share::connects, now); }
  std::optional<Refusal> TakeRequest(TimePoint now) { return TakeRate(&Share::requests, now); }

  // State for the workers that serve the pool's sessions.
  Share& share() { return share_; }
  const Share& share() const { return share_; }

  uint64_t used(Resource resource) const { return quota_.used(resource); }
  // Returns the most that this pool can ever get under the current configuration: the smallest peak
  // on the path to the root.
  uint64_t Peak(Resource resource) const;
  // Returns how often this limit refused or delayed something.
  uint64_t refused(size_t limit) const;
  // Counts a channel that a worker refused because the limit of node `by` is reached.
  Refusal ChannelRefused(const QuotaNode* by) const;
  // Counts packets that a worker delays because the rate of node `by` is used up.
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
  // Counts a program that asked for more than any program may have.
  void CountBoundRefused() { ++bounds_refused_; }
  uint64_t bounds_refused() const { return bounds_refused_; }

  PoolCounts counts() const;
  // Adds what this pool counted in the gateway that this one replaces.
  void AddCounts(const PoolCounts& counts);

  // Time from the creation of each connected queue pair of the pool until it could send.
  metrics::DurationHistogram& set_up() { return set_up_; }
  const metrics::DurationHistogram& set_up() const { return set_up_; }

 private:
  friend class Registry;
  void Set(PoolSettings settings);
  void Leave();
  Refusal Refuse(size_t limit, Level level, const std::string& whose, uint64_t most);
  Refusal Explain(size_t limit, Level level, const std::string& whose, uint64_t most) const;
  std::optional<Refusal> TakeRate(RateNode Share::*rate, TimePoint now);
  // Returns the level of node `by` on the path up from a slot of this pool.
  Level LevelOf(const RateNode* by, RateNode Share::*rate) const;

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
  // Removes a tenant whose pools are all removed.
  void RemoveTenant(const std::string& name);
  const Tenant* FindTenant(const std::string& name) const;

  // Creates or changes a pool; its tenant must exist. The same name with another uid is another
  // pool: the old one leaves.
  Pool& SetPool(PoolSettings settings);
  void RemovePool(const std::string& name);
  Pool* FindPool(const std::string& name) const;
  // Destroys left pools without references. Call after a session has ended.
  void Reap();

  // Calls f(pool) for each pool: those in force, then those that leave.
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
