// SPDX-License-Identifier: Apache-2.0
// Queries to the kernel's tables of routes and neighbours (rtnetlink(7)): the next hop to an
// address, and if the kernel knows the link-layer address of that hop. A call may wait for other
// users of rtnetlink, so it belongs on a dedicated thread. Owner: one thread, in the network
// namespace in which the object was opened.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "gateway/base/status.h"
#include "gateway/port/frame.h"
#include "gateway/port/kernel/netlink.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

// Host on a link of this one: the destination itself, or a router.
struct NextHop {
  wire::Gid address;
  uint32_t interface_index = 0;
  auto operator<=>(const NextHop&) const = default;  // NOLINT(modernize-use-nullptr)
};

class KernelTables {
 public:
  static StatusOr<KernelTables> Open();

  // Returns the next hop of a unicast route. interface_index: where the route must begin; 0: any
  // (link-local destinations need one). Nothing for own addresses, groups, and without a route.
  std::optional<NextHop> Route(const wire::Gid& destination, uint32_t interface_index);
  // Returns true if the kernel can send to the hop without resolving it. `mac` gets the link-layer
  // address, which must then be an Ethernet one; may be nullptr.
  bool Neighbour(const NextHop& hop, MacAddress* mac);
  // Makes the kernel resolve the hop's link-layer address, as `ip neighbour add ... use` does.
  // Returns false if the kernel refuses: it requires CAP_NET_ADMIN.
  bool MakeResolve(const NextHop& hop);

 private:
  explicit KernelTables(NetlinkSocket socket) : socket_(std::move(socket)) {}
  NetlinkSocket socket_;
};

// Parses a change of the neighbour table: the hop, and true if the kernel can send to it now.
// Nothing for other messages.
std::optional<std::pair<NextHop, bool>> ParseNeighbour(const NetlinkMessage& message,
                                                       MacAddress* mac = nullptr);

}  // namespace rocegw::port
