// SPDX-License-Identifier: Apache-2.0
// Questions to the kernel's tables of routes and neighbours (rtnetlink(7)): the next hop towards an
// address, and whether the kernel knows the link-layer address of that hop. A call may wait for
// other users of rtnetlink, so it belongs to a thread that serves no other purpose. Owner: one
// thread, in the network namespace in which the object was opened.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "gateway/base/status.h"
#include "gateway/port/frame.h"
#include "gateway/port/kernel/netlink.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

// A host on a link of this one: the destination itself, or a router.
struct NextHop {
  wire::Gid address;
  uint32_t interface_index = 0;
  auto operator<=>(const NextHop&) const = default;  // NOLINT(modernize-use-nullptr)
};

class KernelTables {
 public:
  static StatusOr<KernelTables> Open();

  // Finds the next hop of a unicast route. interface_index: where the route must begin; 0: anywhere
  // (link-local destinations need one). Nothing for own addresses, groups, and without a route.
  std::optional<NextHop> Route(const wire::Gid& destination, uint32_t interface_index);
  // True when the kernel can send to the hop without asking for its link-layer address. mac: that
  // address, which must be one of Ethernet then; may be nullptr.
  bool Neighbour(const NextHop& hop, MacAddress* mac);
  // Makes the kernel ask for the hop's link-layer address, as `ip neighbour add ... use` does.
  // False when the kernel refuses: it wants CAP_NET_ADMIN.
  bool MakeResolve(const NextHop& hop);

 private:
  explicit KernelTables(NetlinkSocket socket) : socket_(std::move(socket)) {}
  NetlinkSocket socket_;
};

// A change of the neighbour table: the hop, and true when the kernel can send to it now. Nothing
// for other messages.
std::optional<std::pair<NextHop, bool>> ParseNeighbour(const NetlinkMessage& message,
                                                       MacAddress* mac = nullptr);

}  // namespace rocegw::port
