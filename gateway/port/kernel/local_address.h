// SPDX-License-Identifier: Apache-2.0
// The kernel's data about this host's interfaces and routes: names, MTU, MAC, link state and
// addresses of a network device, its GID table, and the own address that talks to a given peer.
// Reads rtnetlink(7) of the calling thread's network namespace. Control path only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/port/frame.h"
#include "gateway/port/kernel/interface_address.h"
#include "gateway/port/kernel/netlink.h"
#include "gateway/wire/gid.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::port {

struct InterfaceInfo {
  std::string name;
  unsigned index = 0;
  size_t mtu = 0;
  MacAddress mac{};   // zero if the interface has none
  bool up = false;    // administratively
  bool link = false;  // up, with a carrier
  bool loopback = false;
  // Usable addresses: not tentative, no failed duplicate detection. Link-local first, then IPv4,
  // then global IPv6, each in the kernel's order: so the kernel fills a GID table
  // (drivers/infiniband/core/roce_gid_mgmt.c).
  std::vector<InterfaceAddress> addresses;
  // A link-local address is tentative: duplicate detection goes on.
  bool awaits_link_local = false;
};

// Returns ENODEV, with the names of existing interfaces, if there is none of that name.
StatusOr<InterfaceInfo> ReadInterface(const std::string& name);

// Returns the current speed of its link as its driver reports it (ethtool(8)); 0: unknown.
uint64_t LinkBytesPerSecond(const std::string& name);
StatusOr<std::vector<InterfaceInfo>> ReadInterfaces();

// GID table of a device. An address keeps its index while it exists; a removed one leaves a hole,
// which the next new address fills. Index 0 belongs to a link-local address if the interface has
// one, or awaits one, when the table gets its first address: programs that take the last or the
// second GID find an address that leads everywhere, as on a kernel device.
class GidTable {
 public:
  // Every index of an address handle (ibv_global_route::sgid_index).
  static constexpr size_t kCapacity = 256;

  // Updates the table. Returns true if it changed. Addresses beyond the capacity get no GID.
  bool Update(const std::vector<InterfaceAddress>& addresses, bool awaits_link_local = false);

  // GIDs up to the highest used index; zero GIDs are holes.
  const std::vector<wire::Gid>& gids() const { return gids_; }
  // Returns -1 for an address of another device.
  int IndexOf(const wire::Gid& gid) const;
  // Writes the table, or reads it into an empty one, so that addresses keep their indices in a
  // gateway that takes over. Update it then.
  void HandOver(hand_over::StateStream& state);
  // Returns how many addresses of the last update got no GID.
  size_t left_out() const { return left_out_; }

 private:
  // Returns false if the table is full.
  bool Insert(const InterfaceAddress& address);

  std::vector<wire::Gid> gids_;
  bool link_local_first_ = false;
  size_t left_out_ = 0;
};

// Returns the address that the kernel would send from; ENETUNREACH and similar without a route.
// interface_index is needed for link-local destinations only.
StatusOr<wire::Gid> SourceFor(const wire::Gid& destination, unsigned interface_index = 0);

// Watch on addresses, links and routes: the descriptor becomes readable on a change.
class AddressMonitor {
 public:
  static StatusOr<AddressMonitor> Create();
  int fd() const { return socket_.fd(); }
  // Reads all notifications. Returns true if anything changed, or if the kernel had to drop some.
  bool Drain();

 private:
  explicit AddressMonitor(NetlinkSocket socket) : socket_(std::move(socket)) {}
  NetlinkSocket socket_;
};

}  // namespace rocegw::port
