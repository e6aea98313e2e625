// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/path/path_rules.h"

#include "gateway/wire/source_port.h"

namespace rocegw::cm {
namespace {

// GRH or IP, UDP, BTH, XRCETH, AtomicETH, ICRC: the longest headers and trailer around a payload.
constexpr uint32_t kLongestHeaders = 40 + 8 + 12 + 4 + 28 + 4;
constexpr uint8_t kSmallestMtuCode = 1;  // 256
constexpr uint8_t kLargestMtuCode = 5;   // 4096

bool IsBroadcast(const wire::Gid& address) { return address.IsV4() && address.V4() == 0xFFFFFFFF; }

// Returns true for 0.0.0.0/8 and the unspecified address.
bool IsZeroNet(const wire::Gid& address) {
  return address.IsV4() ? address.bytes[12] == 0 : address.IsZero();
}

bool Acceptable(const wire::Gid& address, bool from_self) {
  if (address.IsMulticast() || IsBroadcast(address) || IsZeroNet(address)) return false;
  return from_self || !Endpoint{address}.IsLoopback();
}

}  // namespace

uint8_t PathMtuCode(uint32_t mtu) {
  for (uint8_t code = kLargestMtuCode; code >= kSmallestMtuCode; --code) {
    if (mtu >= (128u << code) + kLongestHeaders) return code;
  }
  return 0;
}

uint32_t FlowLabel(const Endpoint& source, const Endpoint& destination) {
  const uint32_t own = source.flow_label & wire::kFlowLabelMask;
  if (!source.address.IsV4() && own != 0) return own;
  return (source.port * 31u + destination.port) & wire::kFlowLabelMask;
}

wire::Path MadPath(const wire::Gid& source, const wire::Gid& destination, uint8_t traffic_class,
                   uint8_t hop_limit) {
  wire::Path path;
  path.source = source;
  path.destination = destination;
  path.traffic_class = traffic_class;
  path.hop_limit = hop_limit;
  return path;
}

wire::IpCmHeader MakeIpCmHeader(const Endpoint& source, const Endpoint& destination) {
  wire::IpCmHeader header;
  header.ip_version = destination.address.IsV4() ? 4 : 6;
  header.source_port = source.port;
  header.source = source.address;
  header.destination = destination.address;
  return header;
}

bool AcceptableAddresses(const wire::IpCmHeader& header, bool from_self) {
  return Acceptable(header.source, from_self) && Acceptable(header.destination, from_self);
}

bool ParseServiceId(uint64_t service_id, PortSpace& space, uint16_t& port) {
  const auto number = static_cast<uint16_t>(service_id >> 16);
  port = static_cast<uint16_t>(service_id);
  if (service_id != wire::IpServiceId(number, port)) return false;
  space = static_cast<PortSpace>(number);
  return space == PortSpace::kIpoib || space == PortSpace::kTcp || space == PortSpace::kUdp ||
         space == PortSpace::kIb;
}

}  // namespace rocegw::cm
