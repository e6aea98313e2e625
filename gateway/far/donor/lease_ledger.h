// SPDX-License-Identifier: Apache-2.0
// Ledger of a donor: who leases how much, within the donated size and each tenant's quota, and
// until when. Tenants and hosts share its sessions and leases: one that has many is refused before
// the others are. Pure: time is an argument. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rocegw::far {

class LeaseLedger {
 public:
  using Seconds = int64_t;  // any monotonic clock

  // A lease holds a slab of a session.
  static constexpr uint64_t kSmallestLease = 64 << 10;
  static constexpr uint64_t kLargestLease = 1 << 30;
  // Sessions or leases that each tenant and each host may have, if the donor has them at all. Above
  // that it may have half as many as are left.
  static constexpr size_t kAlways = 8;
  // Seconds within which the session must be established.
  static constexpr Seconds kOpenSeconds = 5;

  struct Limits {
    uint64_t donated_bytes = 0;
    uint64_t tenant_bytes = 0;  // quota of tenants without one of their own; 0: all
    std::map<std::string, uint64_t> tenants;
    uint32_t sessions = 256;
    uint32_t half_open = 64;   // sessions that are not established yet, among them
    uint32_t leases = 196608;  // all sessions together; one tenant alone has a third
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

  // The session that should end before another one is added: of the sessions that are not
  // established yet, when there are as many as may be, the oldest of the host that has most.
  std::optional<uint64_t> Surplus() const;
  // Returns 0 or EDQUOT (no quota), EUSERS (too many sessions: of all, of the tenant or of the
  // host), ESHUTDOWN (draining). `host` is the address that the session comes from.
  int AddSession(uint64_t session, const std::string& tenant, const std::string& host, Seconds now);
  // The session has said that it knows of its acceptance.
  void Established(uint64_t session);
  // Returns the leases of the session, which end with it.
  std::vector<uint64_t> RemoveSession(uint64_t session);
  // Every word of a session renews all its leases.
  void Renew(uint64_t session, Seconds now);
  // The session was disconnected, and its program may have ended with it: it gives way to others,
  // until it is renewed. FreeFor counts its leases as free.
  void GiveWay(uint64_t session);
  // Returns the session to end so that a session of the tenant and the host gets what Grant or
  // AddSession refused with this error: of those that give way the one that is silent for longest.
  std::optional<uint64_t> WayFor(int error, const std::string& tenant,
                                 const std::string& host) const;
  // Returns the sessions that were silent for too long. They stay until they are removed.
  std::vector<uint64_t> Expired(Seconds now) const;

  // Returns 0 and the lease, or EINVAL (no size of a slab, no such session), ENOSPC (donated
  // memory), EDQUOT (the tenant's quota), EUSERS (number of leases), ESHUTDOWN (draining).
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
    std::string host;
    Seconds renewed = 0;
    bool established = false;
    bool gives_way = false;
    std::set<uint64_t> leases = {};
  };
  struct Lease {
    uint64_t session = 0;
    uint64_t bytes = 0;
  };
  using Counts = std::map<std::string, size_t>;  // without zeroes

  void Erase(std::map<uint64_t, Lease>::iterator lease);
  uint64_t QuotaOf(const std::string& tenant) const;
  // Bytes of sessions that give way, of one tenant or of all.
  uint64_t GivingWay(const std::string* tenant) const;

  const Limits limits_;
  Orders orders_;
  std::map<uint64_t, Session> sessions_;
  std::map<uint64_t, Lease> leases_;
  std::map<std::string, uint64_t> by_tenant_;  // leased bytes; tenants with leases only
  Counts sessions_by_tenant_;
  Counts sessions_by_host_;
  Counts leases_by_tenant_;
  std::set<uint64_t> half_open_;  // sessions
  uint64_t leased_bytes_ = 0;
  uint64_t last_lease_ = 0;
};

}  // namespace rocegw::far
