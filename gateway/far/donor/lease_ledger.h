// SPDX-License-Identifier: Apache-2.0
// Ledger of a donor: who leases how much, within the donated size and each tenant's quota, and
// until when. Pure: time is an argument. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rocegw::far {

class LeaseLedger {
 public:
  using Seconds = int64_t;  // any monotonic clock

  struct Limits {
    uint64_t donated_bytes = 0;
    uint64_t tenant_bytes = 0;  // quota of tenants without one of their own; 0: all
    std::map<std::string, uint64_t> tenants;
    uint32_t sessions = 256;
    uint32_t leases = 65536;  // all sessions together
    Seconds lease_seconds = 15;
  };

  // Orders of the fleet beside the limits of the command line, which still hold.
  struct Orders {
    bool draining = false;  // nothing is granted any more
    std::map<std::string, uint64_t> tenants;
    std::optional<uint64_t> tenant_bytes;  // quota of other tenants; nullopt: no further one
  };

  explicit LeaseLedger(Limits limits) : limits_(std::move(limits)) {}

  // Ends no lease: a lower quota refuses new ones.
  void Follow(Orders orders) { orders_ = std::move(orders); }
  bool draining() const { return orders_.draining; }

  // Returns 0 or EDQUOT (no quota), EUSERS (too many sessions), ESHUTDOWN (draining).
  int AddSession(uint64_t session, const std::string& tenant, Seconds now);
  // Returns the leases of the session, which end with it.
  std::vector<uint64_t> RemoveSession(uint64_t session);
  // Every word of a session renews all its leases.
  void Renew(uint64_t session, Seconds now);
  // Returns the sessions that were silent for too long. They stay until they are removed.
  std::vector<uint64_t> Expired(Seconds now) const;

  // Returns 0 and the lease, or EINVAL (0 bytes, no such session), ENOSPC (donated memory), EDQUOT
  // (the tenant's quota), EUSERS (number of leases), ESHUTDOWN (draining).
  std::pair<int, uint64_t> Grant(uint64_t session, uint64_t bytes);
  // Ends a lease of the session. Returns false if the session has no such lease.
  bool Return(uint64_t session, uint64_t lease);
  // Bytes that this tenant could lease now.
  uint64_t FreeFor(const std::string& tenant) const;
  uint64_t FreeForSession(uint64_t session) const;

  uint64_t leased_bytes() const { return leased_bytes_; }
  size_t lease_count() const { return leases_.size(); }
  size_t session_count() const { return sessions_.size(); }
  const std::map<std::string, uint64_t>& by_tenant() const { return by_tenant_; }
  const Limits& limits() const { return limits_; }

 private:
  struct Session {
    std::string tenant;
    Seconds renewed = 0;
  };
  struct Lease {
    uint64_t session = 0;
    uint64_t bytes = 0;
  };

  void Erase(std::map<uint64_t, Lease>::iterator lease);
  uint64_t QuotaOf(const std::string& tenant) const;

  const Limits limits_;
  Orders orders_;
  std::map<uint64_t, Session> sessions_;
  std::map<uint64_t, Lease> leases_;
  std::map<std::string, uint64_t> by_tenant_;  // leased bytes; tenants with leases only
  uint64_t leased_bytes_ = 0;
  uint64_t last_lease_ = 0;
};

}  // namespace rocegw::far
