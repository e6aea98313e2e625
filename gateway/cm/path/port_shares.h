// SPDX-License-Identifier: Apache-2.0
// Shares of the ephemeral ports that ids hold alone. Programs pick such a port to listen on it, and
// nobody can take a port back, so no pool may hold more than an eighth of what the others left:
// however many ports pools hold, a further pool gets some. The sessions of a pool divide its share
// in the same way, by halves. Looks at one bit per port. Control thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/cm/cm_types.h"

namespace rocegw::cm {

class PortShares {
 public:
  // Ports that exclude each other: of ids of one port space with the same owner of addresses.
  struct Scope {
    PortSpace space = PortSpace::kTcp;
    uint64_t address_owner = 0;
    auto operator<=>(const Scope&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct User {
    uint64_t pool = 0;
    SessionId session;
  };

  PortShares(uint16_t first, uint16_t last)
      : first_(first), count_(static_cast<uint32_t>(last - first) + 1) {}

  bool Covers(uint16_t port) const { return port >= first_ && port <= PortAt(count_ - 1); }
  uint32_t count() const { return count_; }
  // Returns the port `offset` behind the first one, counted around.
  uint16_t PortAt(uint64_t offset) const { return static_cast<uint16_t>(first_ + offset % count_); }
  // Returns the offset of the first port from `offset` on that nobody holds, counted around;
  // `count()`: there is none.
  uint32_t FindFree(const Scope& scope, uint64_t offset) const;
  // Returns true if the user may hold a further port.
  bool MayTake(const Scope& scope, const User& user) const;

  // Records that a user holds a covered port, which nobody holds, or no longer.
  void Take(const Scope& scope, uint16_t port, const User& user);
  void Give(const Scope& scope, uint16_t port, const User& user);

 private:
  struct Held {
    std::vector<uint64_t> ports;  // a bit per port
    uint32_t count = 0;
    std::map<uint64_t, uint32_t> of_pool;
    std::map<SessionId, uint32_t> of_session;
  };

  const uint16_t first_;
  const uint32_t count_;
  std::map<Scope, Held> held_;
};

}  // namespace rocegw::cm
