// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/kernel_tables.h"

#include <linux/neighbour.h>
#include <sys/socket.h>

#include <algorithm>
#include <span>

namespace rocegw::port {
namespace {

constexpr uint16_t kUsableStates =
    NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;

std::span<const uint8_t> AddressBytes(const wire::Gid& gid) {
  return std::span(gid.bytes).subspan(gid.IsV4() ? 12 : 0);
}

uint8_t FamilyOf(const wire::Gid& gid) { return gid.IsV4() ? AF_INET : AF_INET6; }

std::span<const uint8_t> BytesOf(const uint32_t& number) {
  return {reinterpret_cast<const uint8_t*>(&number), sizeof number};
}

ndmsg HeaderOf(const NextHop& hop) {
  ndmsg header{};
  header.ndm_family = FamilyOf(hop.address);
  header.ndm_ifindex = static_cast<int>(hop.interface_index);
  return header;
}

}  // namespace

StatusOr<KernelTables> KernelTables::Open() {
  auto socket = NetlinkSocket::Open();
  if (!socket.ok()) return socket.status();
  return KernelTables(std::move(*socket));
}

std::optional<NextHop> KernelTables::Route(const wire::Gid& destination, uint32_t interface_index) {
  rtmsg header{};
  header.rtm_family = FamilyOf(destination);
  header.rtm_dst_len = destination.IsV4() ? 32 : 128;
  NetlinkRequest request(RTM_GETROUTE, 0, header);
  request.Add(RTA_DST, AddressBytes(destination));
  if (interface_index != 0) request.Add(RTA_OIF, BytesOf(interface_index));
  std::optional<NextHop> hop;
  const Status status = socket_.Exchange(std::move(request), [&](const NetlinkMessage& message) {
    rtmsg answer{};
    if (message.type != RTM_NEWROUTE || !message.Read(answer)) return;
    if (answer.rtm_type != RTN_UNICAST) return;
    uint32_t output = 0;
    wire::Gid gateway;
    message.Attributes(sizeof answer, [&](uint16_t type, std::span<const uint8_t> value) {
      if (type == RTA_OIF) output = AttributeU32(value);
      if (type == RTA_GATEWAY) gateway = AttributeAddress(value);
      // The router of an IPv4 route may have an IPv6 address (RFC 5549): family, then address.
      if (type == RTA_VIA && value.size() > sizeof(uint16_t))
        gateway = AttributeAddress(value.subspan(sizeof(uint16_t)));
    });
    hop = NextHop{gateway.IsZero() ? destination : gateway, output};
  });
  return status.ok() ? hop : std::nullopt;
}

bool KernelTables::Neighbour(const NextHop& hop, MacAddress* mac) {
  NetlinkRequest request(RTM_GETNEIGH, 0, HeaderOf(hop));
  request.Add(NDA_DST, AddressBytes(hop.address));
  bool usable = false;
  const Status status = socket_.Exchange(std::move(request), [&](const NetlinkMessage& message) {
    const auto parsed = ParseNeighbour(message, mac);
    usable = usable || (parsed && parsed->second);
  });
  return status.ok() && usable;
}

bool KernelTables::MakeResolve(const NextHop& hop) {
  ndmsg header = HeaderOf(hop);
  header.ndm_state = NUD_NONE;
  header.ndm_flags = NTF_USE;
  NetlinkRequest request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK, header);
  request.Add(NDA_DST, AddressBytes(hop.address));
  return socket_.Exchange(std::move(request), [](const NetlinkMessage&) {}).ok();
}

std::optional<std::pair<NextHop, bool>> ParseNeighbour(const NetlinkMessage& message,
                                                       MacAddress* mac) {
  ndmsg header{};
  if (message.type != RTM_NEWNEIGH || !message.Read(header)) return std::nullopt;
  NextHop hop{{}, static_cast<uint32_t>(header.ndm_ifindex)};
  const bool usable = (header.ndm_state & kUsableStates) != 0;
  bool has_mac = mac == nullptr;
  message.Attributes(sizeof header, [&](uint16_t type, std::span<const uint8_t> value) {
    if (type == NDA_DST) hop.address = AttributeAddress(value);
    if (type != NDA_LLADDR || !usable || mac == nullptr || value.size() != mac->size()) return;
    std::copy(value.begin(), value.end(), mac->begin());
    has_mac = true;
  });
  return std::pair{hop, usable && has_mac};
}

}  // namespace rocegw::port
