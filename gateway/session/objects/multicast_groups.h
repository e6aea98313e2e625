// SPDX-License-Identifier: Apache-2.0
// Multicast groups that the ports must receive because queue pairs are attached, counted per device
// and per pool. The kernel limits the groups of a socket, so each pool may use an equal share of
// the device's limit. Control thread.
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
  // Joins or leaves a group on a port. Unset: ports receive all groups.
  using Membership = std::function<Status(size_t device, const wire::Gid& group, bool joined)>;
  Membership membership;
  // Returns the port's limit of groups of one address family. Nothing, or unset: no limit.
  using Capacity = std::function<std::optional<size_t>(size_t device, bool ipv4)>;
  Capacity capacity;

  // Attachment of a pool's queue pair.
  struct Attachment {
    uint64_t pool = 0;
    uint32_t device = 0;
    wire::Gid group;
    auto operator<=>(const Attachment&) const = default;  // NOLINT(modernize-use-nullptr)
  };

  // Returns the share of each of `pools` pools if this attachment exceeds it; otherwise nothing.
  std::optional<size_t> ShareExceeded(const Attachment& wanted, size_t pools) const;
  // Returns the number of attachments of the pool to that group.
  uint32_t CountOf(const Attachment& wanted) const {
    const auto held = of_pools_.find(wanted);
    return held == of_pools_.end() ? 0 : held->second;
  }
  // Adds an attachment; on an error of the port nothing is counted.
  Status Add(const Attachment& wanted);
  void Remove(const Attachment& known);

 private:
  using Share = std::tuple<uint64_t, uint32_t, bool>;  // pool, device, IPv4

  static Share ShareOf(const Attachment& of) { return {of.pool, of.device, of.group.IsV4()}; }

  std::map<std::pair<uint32_t, wire::Gid>, uint32_t> users_;
  std::map<Attachment, uint32_t> of_pools_;
  std::map<Share, size_t> groups_;  // number of groups per share
};

}  // namespace rocegw::session
