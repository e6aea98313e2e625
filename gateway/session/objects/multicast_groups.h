// SPDX-License-Identifier: Apache-2.0
// Which multicast groups a port must hear because some queue pair of some session is attached:
// counted per device, and per pool. The kernel bounds the groups of a socket, so each pool may hear
// an equal share of what the device can hear. Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "gateway/base/status.h"
#include "gateway/wire/gid.h"

namespace rocegw::session {

class MulticastGroups {
 public:
  // Makes a port hear a group, or no longer. Not set: ports hear everything anyway.
  using Membership = std::function<Status(size_t device, const wire::Gid& group, bool joined)>;
  Membership membership;
  // The most groups of one address family that a port can hear. Nothing, or not set: no bound.
  using Capacity = std::function<std::optional<size_t>(size_t device, bool ipv4)>;
  Capacity capacity;

  // An attachment of a queue pair of a pool.
  struct Attachment {
    uint64_t pool = 0;
    uint32_t device = 0;
    wire::Gid group;
    auto operator<=>(const Attachment&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  // The share of each of `pools` pools if this attachment is beyond it; nothing if it is not.
  std::optional<size_t> ShareExceeded(const Attachment& wanted, size_t pools) const;
  // One more attachment; an error is the port's, and nothing is counted then.
  Status Add(const Attachment& wanted);
  void Remove(const Attachment& known);

 private:
  using Share = std::tuple<uint64_t, uint32_t, bool>;  // pool, device, IPv4

  static Share ShareOf(const Attachment& of) { return {of.pool, of.device, of.group.IsV4()}; }

  std::map<std::pair<uint32_t, wire::Gid>, uint32_t> users_;
  std::map<Attachment, uint32_t> of_pools_;
  std::map<Share, size_t> groups_;  // that a pool hears
};

}  // namespace rocegw::session
