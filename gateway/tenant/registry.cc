// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/registry.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "gateway/tenant/heap_cost.h"

namespace rocegw::tenant {
namespace {

constexpr size_t IndexOf(Resource resource) { return static_cast<size_t>(resource); }
constexpr size_t IndexOf(Rate rate) { return kResources + static_cast<size_t>(rate); }

const char* LevelName(Level level) {
  switch (level) {
    case Level::kGateway:
      return "the gateway";
    case Level::kTenant:
      return "its tenant";
    case Level::kPool:
      return "the pool";
    case Level::kSlot:
      return "the slot, by the claim of its pod";
  }
  return "";
}

// Returns the count of the limit that workers raise; nullptr: the control thread counts it.
template <typename AnyShare>
auto* CountOfWorkers(AnyShare& share, size_t limit) {
  if (limit == IndexOf(Rate::kBytes)) return &share.held_back_by_bytes;
  if (limit == IndexOf(Rate::kPackets)) return &share.held_back_by_packets;
  return limit == IndexOf(Resource::kChannels) ? &share.channels_refused : nullptr;
}

}  // namespace

void Tenant::Set(TenantSettings settings) {
  quota_.SetQuota(settings.quota);
  share_.SetRates(settings.quota);
  share_.SetWeight(settings.weight);
  settings_ = std::move(settings);
}

Pool::Pool(uint64_t id, PoolSettings settings, std::shared_ptr<Tenant> tenant)
    : id_(id),
      tenant_(std::move(tenant)),
      quota_(settings.name, Level::kPool, &tenant_->quota_),
      share_(&tenant_->share_) {
  share_.quota = &quota_;
  Set(std::move(settings));
}

void Pool::Set(PoolSettings settings) {
  quota_.SetQuota(settings.quota);
  share_.SetRates(settings.quota);
  share_.SetWeight(settings.weight);
  settings_ = std::move(settings);
}

void Pool::Leave() {
  leaving_ = true;
  Quota none;
  none.peak = {};
  // Programs of a leaving pool continue: their existing objects also use the daemon's own
  // resources.
  for (const Resource own :
       {Resource::kDescriptors, Resource::kHeapBytes, Resource::kRemappedBytes})
    none.peak[own] = settings_.quota.peak[own];
  quota_.SetQuota(none);
  // Programs continue with no committed rate and no faster than before.
  none.peak[Rate::kBytes] = settings_.quota.peak[Rate::kBytes];
  none.peak[Rate::kPackets] = settings_.quota.peak[Rate::kPackets];
  share_.SetRates(none);
}

Refusal Pool::Refuse(size_t limit, Level level, const std::string& whose, uint64_t most) {
  ++refused_[limit];
  return Explain(limit, level, whose, most);
}

Refusal Pool::Explain(size_t limit, Level level, const std::string& whose, uint64_t most) const {
  Refusal refusal{LimitName(limit), level, name() + ": limit of " + std::string(LimitName(limit))};
  if (leaving_) {
    refusal.text = name() + ": no more " + std::string(LimitName(limit)) +
                   ", the pool is not in the configuration any more";
    return refusal;
  }
  refusal.text += " reached, which is " + std::to_string(most) + " for " + LevelName(level);
  if (level == Level::kTenant) refusal.text += " " + whose;
  if (level == Level::kSlot) return refusal;
  if (level != Level::kPool) refusal.text += ", less what is committed to others";
  if (level == Level::kGateway && limit < kResources && IsOfDaemon(static_cast<Resource>(limit)))
    refusal.text += " and a part that stays free for them";
  return refusal;
}

std::optional<Refusal> Pool::Take(Resource resource, uint64_t amount) {
  if (const QuotaNode* const by = quota_.Take(resource, amount))
    return Refuse(IndexOf(resource), by->level(), by->name(), by->limit(resource));
  const uint64_t heap = HeapCostOf(resource) * amount;
  const QuotaNode* const by = heap == 0 ? nullptr : quota_.Take(Resource::kHeapBytes, heap);
  if (by == nullptr) return std::nullopt;
  quota_.Give(resource, amount);
  return Refuse(IndexOf(Resource::kHeapBytes), by->level(), by->name(),
                by->limit(Resource::kHeapBytes));
}

void Pool::Give(Resource resource, uint64_t amount) {
  quota_.Give(resource, amount);
  if (const uint64_t heap = HeapCostOf(resource) * amount; heap != 0)
    quota_.Give(Resource::kHeapBytes, heap);
}

void Pool::Adopt(Resource resource, uint64_t amount) {
  quota_.Adopt(resource, amount);
  if (const uint64_t heap = HeapCostOf(resource) * amount; heap != 0)
    quota_.Adopt(Resource::kHeapBytes, heap);
}

Refusal Pool::RefuseSlot(const SlotShare& slot) {
  return Refuse(IndexOf(Resource::kQps), Level::kSlot, name(), slot.MostQps());
}

std::optional<Refusal> Pool::Check(Resource resource, uint64_t amount) {
  const QuotaNode* const by = quota_.Refusing(resource, amount);
  if (by == nullptr) return std::nullopt;
  return Refuse(IndexOf(resource), by->level(), by->name(), by->limit(resource));
}

std::optional<Refusal> Pool::TakeRate(RateNode Share::*rate, TimePoint now) {
  const RateNode* const by = (share_.*rate).Take(now);
  if (by == nullptr) return std::nullopt;
  const Level level = LevelOf(by, rate);
  return Refuse(IndexOf(Rate::kConnects), level, tenant_->settings_.name, by->limit());
}

Level Pool::LevelOf(const RateNode* by, RateNode Share::*rate) const {
  if (by == &(share_.*rate)) return Level::kPool;
  if (by == &(tenant_->share_.*rate)) return Level::kTenant;
  return by == &(tenant_->share_.parent()->*rate) ? Level::kGateway : Level::kSlot;
}

Refusal Pool::ChannelRefused(const QuotaNode* by) const {
  return Explain(IndexOf(Resource::kChannels), by->level(), by->name(),
                 by->limit(Resource::kChannels));
}

Refusal Pool::HeldBack(Rate rate, const RateNode* by) const {
  const Level level = LevelOf(by, rate == Rate::kBytes ? &Share::bytes : &Share::packets);
  return Explain(IndexOf(rate), level, tenant_->settings_.name, by->limit());
}

uint64_t Pool::refused(size_t limit) const {
  const std::atomic<uint64_t>* const of_workers = CountOfWorkers(share_, limit);
  return of_workers == nullptr ? refused_[limit] : of_workers->load();
}

PoolCounts Pool::counts() const {
  PoolCounts counts{.peers_refused = peers_refused_,
                    .identities_refused = identities_refused_,
                    .bounds_refused = bounds_refused_,
                    .attaches = attaches_,
                    .sent_bytes = share_.sent_bytes.load(),
                    .sent_packets = share_.sent_packets.load(),
                    .set_up = set_up_,
                    .operations = share_.operations.Read()};
  for (size_t limit = 0; limit < kLimits; ++limit) counts.refused[limit] = refused(limit);
  return counts;
}

void Pool::AddCounts(const PoolCounts& counts) {
  for (size_t limit = 0; limit < kLimits; ++limit) {
    if (std::atomic<uint64_t>* const of_workers = CountOfWorkers(share_, limit)) {
      *of_workers += counts.refused[limit];
    } else {
      refused_[limit] += counts.refused[limit];
    }
  }
  peers_refused_ += counts.peers_refused;
  identities_refused_ += counts.identities_refused;
  bounds_refused_ += counts.bounds_refused;
  for (size_t i = 0; i < attaches_.size(); ++i) attaches_[i] += counts.attaches[i];
  share_.sent_bytes += counts.sent_bytes;
  share_.sent_packets += counts.sent_packets;
  set_up_.Add(counts.set_up);
  share_.operations.Add(counts.operations);
}

uint64_t Pool::Peak(Resource resource) const {
  uint64_t least = kUnlimited;
  for (const QuotaNode* node = &quota_; node != nullptr; node = node->parent())
    least = std::min(least, node->limit(resource));
  return least;
}

Registry::Registry(const Amounts& capacity)
    : gateway_("gateway", Level::kGateway, nullptr), share_(nullptr) {
  SetCapacity(capacity);
}

void Registry::SetCapacity(const Amounts& capacity) {
  capacity_ = capacity;
  Quota quota;
  quota.peak = capacity;
  gateway_.SetQuota(quota);
  share_.SetRates(quota);
}

void Registry::SetTenant(TenantSettings settings) {
  auto& known = tenants_[settings.name];
  if (known == nullptr) known = std::make_shared<Tenant>(settings.name, gateway_, share_);
  known->Set(std::move(settings));
}

void Registry::RemoveTenant(const std::string& name) {
  const auto known = tenants_.find(name);
  if (known == tenants_.end()) return;
  TenantSettings settings = known->second->settings();
  settings.quota = {};
  known->second->Set(std::move(settings));
  tenants_.erase(known);
}

const Tenant* Registry::FindTenant(const std::string& name) const {
  const auto found = tenants_.find(name);
  return found == tenants_.end() ? nullptr : found->second.get();
}

Pool& Registry::SetPool(PoolSettings settings) {
  const auto known = pools_.find(settings.name);
  if (known != pools_.end() && known->second->settings().uid == settings.uid) {
    known->second->Set(std::move(settings));
    return *known->second;
  }
  RemovePool(settings.name);
  const std::string name = settings.name;
  auto& added = pools_[name];
  added = std::make_unique<Pool>(next_id_++, std::move(settings), tenants_.at(TenantOf(name)));
  return *added;
}

void Registry::RemovePool(const std::string& name) {
  const auto known = pools_.find(name);
  if (known == pools_.end()) return;
  known->second->Leave();
  leaving_.push_back(std::move(known->second));
  pools_.erase(known);
  Reap();
}

Pool* Registry::FindPool(const std::string& name) const {
  const auto found = pools_.find(name);
  return found == pools_.end() ? nullptr : found->second.get();
}

void Registry::Reap() {
  std::erase_if(leaving_, [](const auto& pool) { return pool->quota_.unused(); });
}

}  // namespace rocegw::tenant
