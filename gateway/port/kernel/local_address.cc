// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/local_address.h"

#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "gateway/base/unique_fd.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/port/kernel/netlink.h"
#include "gateway/wire/link_local.h"

namespace rocegw::port {
namespace {

std::optional<InterfaceInfo> ParseLink(const NetlinkMessage& message) {
  ifinfomsg header{};
  if (message.type != RTM_NEWLINK || !message.Read(header)) return std::nullopt;
  InterfaceInfo info;
  info.index = static_cast<unsigned>(header.ifi_index);
  info.up = (header.ifi_flags & IFF_UP) != 0;
  info.link = info.up && (header.ifi_flags & IFF_RUNNING) != 0;
  info.loopback = (header.ifi_flags & IFF_LOOPBACK) != 0;
  message.Attributes(sizeof header, [&](uint16_t type, std::span<const uint8_t> value) {
    if (type == IFLA_IFNAME) {
      const auto* name = reinterpret_cast<const char*>(value.data());
      info.name.assign(name, strnlen(name, value.size()));
    } else if (type == IFLA_MTU) {
      info.mtu = AttributeU32(value);
    } else if (type == IFLA_ADDRESS && value.size() == info.mac.size()) {
      std::copy(value.begin(), value.end(), info.mac.begin());
    } else if (type == IFLA_CARRIER && !value.empty()) {
      // Follows the cable at once; the flag above may lag by a second.
      info.link = info.up && value[0] != 0;
    }
  });
  return info;
}

struct ParsedAddress {
  unsigned interface_index = 0;
  bool tentative = false;
  InterfaceAddress address;
};

std::optional<ParsedAddress> ParseAddress(const NetlinkMessage& message) {
  ifaddrmsg header{};
  if (message.type != RTM_NEWADDR || !message.Read(header)) return std::nullopt;
  uint32_t flags = header.ifa_flags;
  wire::Gid local;
  wire::Gid peer;
  message.Attributes(sizeof header, [&](uint16_t type, std::span<const uint8_t> value) {
    if (type == IFA_LOCAL) local = AttributeAddress(value);
    if (type == IFA_ADDRESS) peer = AttributeAddress(value);
    if (type == IFA_FLAGS) flags = AttributeU32(value);
  });
  // On a point-to-point link IFA_ADDRESS is the remote end.
  const wire::Gid& gid = local.IsZero() ? peer : local;
  if (gid.IsZero() || (flags & IFA_F_DADFAILED) != 0) return std::nullopt;
  return ParsedAddress{header.ifa_index,
                       (flags & IFA_F_TENTATIVE) != 0,
                       {gid, header.ifa_prefixlen, wire::IsLinkLocal(gid)}};
}

void Add(const ParsedAddress& parsed, InterfaceInfo& info) {
  if (!parsed.tentative) {
    info.addresses.push_back(parsed.address);
  } else if (parsed.address.link_local) {
    info.awaits_link_local = true;
  }
}

int Rank(const InterfaceAddress& address) {
  if (address.link_local) return 0;
  return address.gid.IsV4() ? 1 : 2;
}

}  // namespace

StatusOr<std::vector<InterfaceInfo>> ReadInterfaces() {
  auto netlink = NetlinkSocket::Open();
  if (!netlink.ok()) return netlink.status();
  std::vector<InterfaceInfo> interfaces;
  Status status = netlink->Exchange(NetlinkRequest(RTM_GETLINK, NLM_F_DUMP, ifinfomsg{}),
                                    [&](const NetlinkMessage& message) {
                                      if (auto info = ParseLink(message))
                                        interfaces.push_back(std::move(*info));
                                    });
  if (!status.ok()) return status;
  status = netlink->Exchange(NetlinkRequest(RTM_GETADDR, NLM_F_DUMP, ifaddrmsg{}),
                             [&](const NetlinkMessage& message) {
                               const auto parsed = ParseAddress(message);
                               if (!parsed) return;
                               for (InterfaceInfo& info : interfaces) {
                                 if (info.index == parsed->interface_index) Add(*parsed, info);
                               }
                             });
  if (!status.ok()) return status;
  for (InterfaceInfo& info : interfaces) {
    std::stable_sort(
        info.addresses.begin(), info.addresses.end(),
        [](const InterfaceAddress& a, const InterfaceAddress& b) { return Rank(a) < Rank(b); });
  }
  return interfaces;
}

StatusOr<InterfaceInfo> ReadInterface(const std::string& name) {
  auto interfaces = ReadInterfaces();
  if (!interfaces.ok()) return interfaces.status();
  std::string known;
  for (InterfaceInfo& info : *interfaces) {
    if (info.name == name) return std::move(info);
    known += (known.empty() ? "" : ", ") + info.name;
  }
  return Status(ENODEV, "no network interface " + name + "; there are: " + known);
}

uint64_t LinkBytesPerSecond(const std::string& name) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_cmd command{};
  command.cmd = ETHTOOL_GSET;
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&command);
  if (!socket.valid() || ::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return 0;
  const uint32_t mbit = ethtool_cmd_speed(&command);
  return mbit == static_cast<uint32_t>(SPEED_UNKNOWN) ? 0 : uint64_t{mbit} * 125'000;
}

bool GidTable::Update(const std::vector<InterfaceAddress>& addresses, bool awaits_link_local) {
  const auto present = [&](const wire::Gid& gid) {
    return std::any_of(addresses.begin(), addresses.end(),
                       [&](const InterfaceAddress& address) { return address.gid == gid; });
  };
  if (gids_.empty() && (awaits_link_local || std::any_of(addresses.begin(), addresses.end(),
                                                         [](const InterfaceAddress& address) {
                                                           return address.link_local;
                                                         }))) {
    link_local_first_ = true;
    gids_.emplace_back();
  }
  bool changed = false;
  for (wire::Gid& gid : gids_) {
    if (!gid.IsZero() && !present(gid)) {
      gid = {};
      changed = true;
    }
  }
  left_out_ = 0;
  for (const InterfaceAddress& address : addresses) {
    if (address.gid.IsZero() || IndexOf(address.gid) >= 0) continue;
    if (Insert(address)) {
      changed = true;
    } else {
      ++left_out_;
    }
  }
  return changed;
}

bool GidTable::Insert(const InterfaceAddress& address) {
  const bool not_first = link_local_first_ && !address.link_local;
  const auto hole = std::find(gids_.begin() + (not_first ? 1 : 0), gids_.end(), wire::Gid{});
  if (hole != gids_.end()) {
    *hole = address.gid;
    return true;
  }
  if (gids_.size() == kCapacity) return false;
  gids_.push_back(address.gid);
  return true;
}

void GidTable::HandOver(hand_over::StateStream& state) {
  auto& [gids, link_local_first, left_out] = *this;
  (void)left_out;  // counted by Update
  state(link_local_first);
  state.Vector(gids, kCapacity, [&](wire::Gid& gid) { state.Bytes(gid.bytes); });
  // Index 0 belongs to the link-local address.
  state.Require(!link_local_first || !gids.empty(), "table of GIDs is impossible");
}

int GidTable::IndexOf(const wire::Gid& gid) const {
  if (gid.IsZero()) return -1;
  const auto found = std::find(gids_.begin(), gids_.end(), gid);
  return found == gids_.end() ? -1 : static_cast<int>(found - gids_.begin());
}

StatusOr<wire::Gid> SourceFor(const wire::Gid& destination, unsigned interface_index) {
  const bool ipv4 = destination.IsV4();
  const UniqueFd fd(socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Status(errno, std::string("cannot open a socket: ") + strerror(errno));
  // Connecting a UDP socket sends nothing; it makes the kernel choose a route and a source.
  sockaddr_storage address{};
  socklen_t length = 0;
  if (ipv4) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(wire::kRocePort);
    v4.sin_addr.s_addr = htonl(destination.V4());
    length = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(wire::kRocePort);
    v6.sin6_scope_id = interface_index;
    std::memcpy(&v6.sin6_addr, destination.bytes.data(), destination.bytes.size());
    length = sizeof v6;
  }
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return Status(errno, std::string("no route to the destination: ") + strerror(errno));
  }
  if (ipv4) {
    return wire::Gid::FromV4(ntohl(reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr));
  }
  wire::Gid gid;
  std::memcpy(gid.bytes.data(), &reinterpret_cast<sockaddr_in6&>(address).sin6_addr,
              gid.bytes.size());
  return gid;
}

StatusOr<AddressMonitor> AddressMonitor::Create() {
  auto socket = NetlinkSocket::Open(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                                    RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE);
  if (!socket.ok()) return socket.status();
  return AddressMonitor(std::move(*socket));
}

bool AddressMonitor::Drain() {
  bool changed = false;
  const bool complete = socket_.Drain([&](const NetlinkMessage&) { changed = true; });
  return changed || !complete;
}

}  // namespace rocegw::port
