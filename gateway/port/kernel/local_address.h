// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of this host's interfaces and routes: names, MTU, MAC, link state and
// addresses of a network device, the GID table made of them, and which own address talks to a given
// peer. Reads rtnetlink(7) of the calling thread's network namespace. Control path only.
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

namespace rocegw::port {

struct InterfaceInfo {
  std::string name;
  unsigned index = 0;
  size_t mtu = 0;
  MacAddress mac{};   // zero for interfaces without one
  bool up = false;    // administratively
  bool link = false;  // up and a carrier is there
  bool loopback = false;
  // Usable ones: not tentative, not failed in duplicate detection. IPv4 first, then global IPv6,
  // then link-local; each in the kernel's order.
  std::vector<InterfaceAddress> addresses;
};

// ENODEV with the interfaces that do exist when there is none of that name.
StatusOr<InterfaceInfo> ReadInterface(const std::string& name);

// What its link can do now, as its driver says (ethtool(8)); 0: it does not say.
uint64_t LinkBytesPerSecond(const std::string& name);
StatusOr<std::vector<InterfaceInfo>> ReadInterfaces();

// GIDs of a device by index. An address keeps its index for as long as it exists; one that is gone
// leaves a hole, which the next new address takes.
class GidTable {
 public:
  static constexpr size_t kCapacity = 128;

  // True when something changed. Addresses beyond the capacity are left out.
  bool Update(const std::vector<InterfaceAddress>& addresses);

  // Up to the highest index in use; zero GIDs are holes.
  const std::vector<wire::Gid>& gids() const { return gids_; }
  // -1: not an address of this device.
  int IndexOf(const wire::Gid& gid) const;

 private:
  std::vector<wire::Gid> gids_;
};

// The address the kernel would send from; ENETUNREACH and the like when there is no route.
// interface_index is needed for link-local destinations only.
StatusOr<wire::Gid> SourceFor(const wire::Gid& destination, unsigned interface_index = 0);

// Tells when addresses, links or routes change: the descriptor becomes readable.
class AddressMonitor {
 public:
  static StatusOr<AddressMonitor> Create();
  int fd() const { return socket_.fd(); }
  // Takes what is there; true when anything changed (also when the kernel had to leave some out).
  bool Drain();

 private:
  explicit AddressMonitor(NetlinkSocket socket) : socket_(std::move(socket)) {}
  NetlinkSocket socket_;
};

}  // namespace rocegw::port
