// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/donor/lease_ledger.h"

#include <algorithm>
#include <cerrno>

namespace rocegw::far {

namespace {

using Counts = std::map<std::string, size_t>;

size_t CountOf(const Counts& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found != counts.end() ? found->second : 0;
}

void Decrease(Counts& counts, const std::string& name) {
  const auto found = counts.find(name);
  if (--found->second == 0) counts.erase(found);
}

// Whether a host or client that has `own` may have one more, while all have `used` of `most`.
bool HasShare(size_t own, size_t used, size_t most) {
  return used < most && own < std::max(LeaseLedger::kAlways, (most - used) / 2);
}

}  // namespace

std::optional<uint64_t> LeaseLedger::Surplus() const {
  const bool full = half_open_.size() >= limits_.half_open || sessions_.size() >= limits_.sessions;
  if (!full || half_open_.empty()) return std::nullopt;
  Counts by_host;
  for (const uint64_t session : half_open_) by_host[sessions_.at(session).host]++;
  size_t most = 0;
  for (const auto& [host, count] : by_host) most = std::max(most, count);
  for (const uint64_t session : half_open_) {
    if (by_host[sessions_.at(session).host] == most) return session;
  }
  return std::nullopt;
}

int LeaseLedger::AddSession(uint64_t session, const std::string& tenant, const std::string& host,
                            Seconds now) {
  if (orders_.draining) return ESHUTDOWN;
  if (QuotaOf(tenant) == 0) return EDQUOT;
  for (const size_t own :
       {CountOf(sessions_by_tenant_, tenant), CountOf(sessions_by_host_, host)}) {
    if (!HasShare(own, sessions_.size(), limits_.sessions)) return EUSERS;
  }
  sessions_[session] = {tenant, host, now};
  sessions_by_tenant_[tenant]++;
  sessions_by_host_[host]++;
  half_open_.insert(session);
  return 0;
}

void LeaseLedger::Established(uint64_t session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  found->second.established = true;
  half_open_.erase(session);
}

std::vector<uint64_t> LeaseLedger::RemoveSession(uint64_t session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return {};
  std::vector<uint64_t> ended(found->second.leases.begin(), found->second.leases.end());
  for (const uint64_t lease : ended) Erase(leases_.find(lease));
  Decrease(sessions_by_tenant_, found->second.tenant);
  Decrease(sessions_by_host_, found->second.host);
  half_open_.erase(session);
  sessions_.erase(found);
  return ended;
}

void LeaseLedger::Renew(uint64_t session, Seconds now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  found->second.renewed = now;
  found->second.gives_way = false;
  Established(session);
}

void LeaseLedger::GiveWay(uint64_t session) {
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) found->second.gives_way = true;
}

std::optional<uint64_t> LeaseLedger::WayFor(int error, const std::string& tenant,
                                            const std::string& host) const {
  if (error != ENOSPC && error != EDQUOT && error != EUSERS) return std::nullopt;
  const bool full = sessions_.size() >= limits_.sessions || leases_.size() >= limits_.leases;
  std::optional<uint64_t> oldest;
  for (const auto& [number, session] : sessions_) {
    const bool own = session.tenant == tenant || (error == EUSERS && session.host == host);
    const bool any = error == ENOSPC || (error == EUSERS && full);
    if (!session.gives_way || !(own || any)) continue;
    if (!oldest || session.renewed < sessions_.at(*oldest).renewed) oldest = number;
  }
  return oldest;
}

uint64_t LeaseLedger::GivingWay(const std::string* tenant) const {
  uint64_t bytes = 0;
  for (const auto& [number, session] : sessions_) {
    if (!session.gives_way || (tenant != nullptr && session.tenant != *tenant)) continue;
    for (const uint64_t lease : session.leases) bytes += leases_.at(lease).bytes;
  }
  return bytes;
}

std::vector<uint64_t> LeaseLedger::Expired(Seconds now) const {
  std::vector<uint64_t> expired;
  for (const auto& [number, session] : sessions_) {
    const Seconds lasts =
        session.established ? limits_.lease_seconds : std::min(kOpenSeconds, limits_.lease_seconds);
    if (now - session.renewed > lasts) expired.push_back(number);
  }
  return expired;
}

std::pair<int, uint64_t> LeaseLedger::Grant(uint64_t session, uint64_t bytes) {
  const auto found = sessions_.find(session);
  const bool is_slab = bytes >= kSmallestLease && bytes <= kLargestLease && bytes % 4096 == 0;
  if (found == sessions_.end() || !is_slab) return {EINVAL, 0};
  if (orders_.draining) return {ESHUTDOWN, 0};
  const std::string& tenant = found->second.tenant;
  const size_t own = CountOf(leases_by_tenant_, tenant);
  if (!HasShare(own, leases_.size(), limits_.leases)) return {EUSERS, 0};
  if (bytes > limits_.donated_bytes - leased_bytes_) return {ENOSPC, 0};
  const auto used = by_tenant_.find(tenant);
  const uint64_t leased = used != by_tenant_.end() ? used->second : 0;
  const uint64_t quota = QuotaOf(tenant);
  if (bytes > quota - std::min(quota, leased)) return {EDQUOT, 0};
  leases_[++last_lease_] = {session, bytes};
  found->second.leases.insert(last_lease_);
  by_tenant_[tenant] += bytes;
  leases_by_tenant_[tenant]++;
  leased_bytes_ += bytes;
  return {0, last_lease_};
}

bool LeaseLedger::Return(uint64_t session, uint64_t lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || found->second.session != session) return false;
  Erase(found);
  return true;
}

uint64_t LeaseLedger::QuotaOf(const std::string& tenant) const {
  const auto own = limits_.tenants.find(tenant);
  const uint64_t quota = own != limits_.tenants.end() ? own->second
                         : limits_.tenant_bytes != 0  ? limits_.tenant_bytes
                                                      : limits_.donated_bytes;
  const auto ordered = orders_.tenants.find(tenant);
  return std::min(quota, ordered != orders_.tenants.end() ? ordered->second
                                                          : orders_.tenant_bytes.value_or(quota));
}

uint64_t LeaseLedger::FreeFor(const std::string& tenant) const {
  if (orders_.draining) return 0;
  const uint64_t free = limits_.donated_bytes - leased_bytes_ + GivingWay(nullptr);
  const uint64_t quota = QuotaOf(tenant);
  const auto used = by_tenant_.find(tenant);
  const uint64_t all = used != by_tenant_.end() ? used->second : 0;
  const uint64_t leased = all - GivingWay(&tenant);
  return std::min(free, quota - std::min(quota, leased));
}

uint64_t LeaseLedger::FreeForSession(uint64_t session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() ? FreeFor(found->second.tenant) : 0;
}

void LeaseLedger::Erase(std::map<uint64_t, Lease>::iterator lease) {
  const uint64_t bytes = lease->second.bytes;
  Session& session = sessions_.at(lease->second.session);
  session.leases.erase(lease->first);
  Decrease(leases_by_tenant_, session.tenant);
  const auto tenant = by_tenant_.find(session.tenant);
  tenant->second -= bytes;
  if (tenant->second == 0) by_tenant_.erase(tenant);
  leased_bytes_ -= bytes;
  leases_.erase(lease);
}

}  // namespace rocegw::far
