// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/donor/lease_ledger.h"

#include <algorithm>
#include <cerrno>

namespace rocegw::far {

int LeaseLedger::AddSession(uint64_t session, const std::string& tenant, Seconds now) {
  if (orders_.draining) return ESHUTDOWN;
  if (sessions_.size() >= limits_.sessions) return EUSERS;
  if (QuotaOf(tenant) == 0) return EDQUOT;
  sessions_[session] = {tenant, now};
  return 0;
}

std::vector<uint64_t> LeaseLedger::RemoveSession(uint64_t session) {
  std::vector<uint64_t> ended;
  for (auto lease = leases_.begin(); lease != leases_.end();) {
    const auto next = std::next(lease);
    if (lease->second.session == session) {
      ended.push_back(lease->first);
      Erase(lease);
    }
    lease = next;
  }
  sessions_.erase(session);
  return ended;
}

void LeaseLedger::Renew(uint64_t session, Seconds now) {
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) found->second.renewed = now;
}

std::vector<uint64_t> LeaseLedger::Expired(Seconds now) const {
  std::vector<uint64_t> expired;
  for (const auto& [number, session] : sessions_) {
    if (now - session.renewed > limits_.lease_seconds) expired.push_back(number);
  }
  return expired;
}

std::pair<int, uint64_t> LeaseLedger::Grant(uint64_t session, uint64_t bytes) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || bytes == 0) return {EINVAL, 0};
  if (orders_.draining) return {ESHUTDOWN, 0};
  if (leases_.size() >= limits_.leases) return {EUSERS, 0};
  if (bytes > limits_.donated_bytes - leased_bytes_) return {ENOSPC, 0};
  if (bytes > FreeFor(found->second.tenant)) return {EDQUOT, 0};
  leases_[++last_lease_] = {session, bytes};
  by_tenant_[found->second.tenant] += bytes;
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
  const uint64_t free = limits_.donated_bytes - leased_bytes_;
  const uint64_t quota = QuotaOf(tenant);
  const auto used = by_tenant_.find(tenant);
  const uint64_t leased = used != by_tenant_.end() ? used->second : 0;
  return std::min(free, quota - std::min(quota, leased));
}

uint64_t LeaseLedger::FreeForSession(uint64_t session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() ? FreeFor(found->second.tenant) : 0;
}

void LeaseLedger::Erase(std::map<uint64_t, Lease>::iterator lease) {
  const uint64_t bytes = lease->second.bytes;
  const auto tenant = by_tenant_.find(sessions_.at(lease->second.session).tenant);
  tenant->second -= bytes;
  if (tenant->second == 0) by_tenant_.erase(tenant);
  leased_bytes_ -= bytes;
  leases_.erase(lease);
}

}  // namespace rocegw::far
