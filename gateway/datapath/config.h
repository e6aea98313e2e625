// SPDX-License-Identifier: Apache-2.0
// What ports, workers and sessions of a gateway are made from, as plain values: of a daemon, whose
// configuration file has more in it, and of a gateway inside of a program. Defaults are those of
// the daemon's file. What depends on the machine (does the interface exist, may we bind there) is
// found out when the parts start. Start-up only, one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/base/memory_placement.h"
#include "gateway/flow/cc_profile.h"
#include "gateway/flow/cc_selector.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/wire/gid.h"

namespace rocegw::datapath {

enum class PortMode : uint8_t { kUdp, kAfPacket, kVdev };
enum class Segmentation : uint8_t { kAuto, kOn, kOff };
enum class Steering : uint8_t { kQpn, kHash };
inline constexpr std::pair<const char*, PortMode> kPortModes[] = {
    {"udp", PortMode::kUdp}, {"af_packet", PortMode::kAfPacket}, {"vdev", PortMode::kVdev}};

// The steering table has 64 buckets of QPNs; a worker without one would never see a packet.
inline constexpr uint32_t kMaxWorkers = 64;

using MacAddress = std::array<uint8_t, 6>;

struct InterfaceAddress {
  wire::Gid address;
  uint32_t prefix_length = 0;  // of the address family: 0 to 32 or 0 to 128
  bool operator==(const InterfaceAddress&) const = default;
};

struct NeighbourConfig {
  wire::Gid address;
  MacAddress mac{};
  bool operator==(const NeighbourConfig&) const = default;
};

struct PortConfig {
  std::string name = "port0";
  PortMode mode = PortMode::kUdp;
  std::string interface = "auto";  // netdev; "auto": the one that the default route names
  Segmentation segmentation = Segmentation::kAuto;
  Steering steering = Steering::kQpn;
  uint64_t receive_buffer_bytes = 8ull << 20;  // asked of the kernel for each receiving socket
  // Mode udp, one worker: this address of the interface alone. Others are left to other processes.
  std::optional<wire::Gid> only_address;
  // Mode vdev only: a DPDK device without a netdev, so what the kernel would know is told here.
  std::string vdev;  // "net_memif0,role=server"
  uint32_t mtu = 1500;
  uint32_t vlan = 0;  // 0: frames have no tag
  MacAddress mac{};   // all zero: what the device says
  std::vector<InterfaceAddress> addresses;
  std::vector<wire::Gid> routers;  // at most one IPv4 and one IPv6
  std::vector<NeighbourConfig> neighbours;
  bool operator==(const PortConfig&) const = default;
};

// At most so many at a time; 0: none at all.
struct LimitsConfig {
  uint32_t sessions = 256;
  uint32_t qps = 65536;
  uint32_t cqs = 65536;
  uint32_t srqs = 65536;
  uint32_t mrs = 262144;
  uint32_t pds = 16384;
  uint32_t cm_ids = 65536;
  uint64_t registered_bytes = 1ull << 40;
  uint64_t segment_bytes = 8ull << 30;
  bool operator==(const LimitsConfig&) const = default;
};

// The pool tenants/default/pools/default, which exists without a controller.
struct PoolConfig {
  bool trusted = true;  // client memory may be reached on the workers themselves
  bool remap_allowed = true;
  LimitsConfig limits;
  bool operator==(const PoolConfig&) const = default;
};

// What is between this gateway and others.
struct GatewaysConfig {
  bool discovery = true;
  bool channels = true;
  uint32_t paths = 1;
  uint32_t vendor_id = wire::kDefaultVendorId;  // a locally administered OUI
  bool operator==(const GatewaysConfig&) const = default;
};

struct Config {
  uint32_t workers = 0;  // 0: a quarter of the processors, at least one
  bool pin_workers = false;
  bool guest_rounds = false;  // threads that poll may run a worker's rounds; in a program only
  std::vector<PortConfig> ports = {PortConfig{}};
  uint64_t window_bytes = 0;  // in flight per flow; 0: from the receive buffer that the port got
  GatewaysConfig gateways;
  // FLUSH and ATOMIC WRITE, towards RDMA devices and gateways.
  MemoryPlacement memory_placement = MemoryPlacement::kDisabled;
  flow::CcKind native_congestion = flow::CcKind::kDcqcn;  // of connections to RNICs
  flow::CcProfile congestion;                             // the link's speed is not in it
  flow::CcPolicy congestion_policy;                       // no rules: native_congestion stays
  // Kinds that channels may have, as wire::GatewayOption bits.
  uint32_t channel_congestion = wire::kOptionCcStatic * ((1u << flow::kCcKinds) - 1);
  flow::CcPolicy channel_policy;  // no rules: the best of them stays
  PoolConfig default_pool;
  bool operator==(const Config&) const = default;
};

// Workers to start on a machine with so many processors.
uint32_t EffectiveWorkers(const Config& config, uint32_t processors);

const char* PortModeName(PortMode mode);

}  // namespace rocegw::datapath
