// SPDX-License-Identifier: Apache-2.0
// Configuration of a gateway's ports, workers and sessions as plain values, for a daemon (whose
// configuration file contains more) and for a gateway in a process. Defaults are those of the
// daemon's file. Properties of the machine (whether an interface exists, whether binding is
// allowed) are checked when the parts start. Used at start-up, by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/base/fleet_keys.h"
#include "gateway/base/memory_placement.h"
#include "gateway/base/timing/wait_policy.h"
#include "gateway/flow/cc_profile.h"
#include "gateway/flow/cc_selector.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/wire/gid.h"

namespace rocegw::datapath {

enum class PortMode : uint8_t { kUdp, kAfPacket, kAfXdp, kPci, kVdev };
enum class Segmentation : uint8_t { kAuto, kOn, kOff };
enum class Steering : uint8_t { kQpn, kHash };
inline constexpr std::pair<const char*, PortMode> kPortModes[] = {
    {"udp", PortMode::kUdp},
    {"af_packet", PortMode::kAfPacket},
    {"af_xdp", PortMode::kAfXdp},
    {"pci", PortMode::kPci},
    {"vdev", PortMode::kVdev}};
// Returns true if the device has no netdev, so the configuration gives addresses and MTU.
constexpr bool HasNoNetdev(PortMode mode) {
  return mode == PortMode::kPci || mode == PortMode::kVdev;
}

// The steering table has 64 buckets of QPNs; a worker without a bucket would never get a packet.
inline constexpr uint32_t kMaxWorkers = 64;

using MacAddress = std::array<uint8_t, 6>;

struct InterfaceAddress {
  wire::Gid address;
  uint32_t prefix_length = 0;  // in bits of the address family: 0 to 32 or 0 to 128
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
  std::string interface = "auto";  // netdev; "auto": the one of the default route
  Segmentation segmentation = Segmentation::kAuto;
  Steering steering = Steering::kQpn;
  uint64_t receive_buffer_bytes = 8ull << 20;  // requested from the kernel for each receive socket
  // Mode udp with one worker: use only this address of the interface; other processes may use the
  // others.
  std::optional<wire::Gid> only_address;
  // Modes pci and vdev: a DPDK device without a netdev, so the file gives what the kernel would
  // otherwise know.
  std::string pci;   // mode pci: "0000:03:00.0"
  std::string vdev;  // mode vdev: "net_memif0,role=server"
  uint32_t mtu = 1500;
  uint32_t vlan = 0;  // 0: untagged frames
  MacAddress mac{};   // all zero: the device's own
  std::vector<InterfaceAddress> addresses;
  std::vector<wire::Gid> routers;  // at most one IPv4 and one IPv6
  std::vector<NeighbourConfig> neighbours;
  bool operator==(const PortConfig&) const = default;
};

// Limits of objects at a time; 0: none allowed.
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
  uint64_t heap_bytes = 8ull << 30;
  uint64_t remapped_bytes = 1ull << 40;
  bool operator==(const LimitsConfig&) const = default;
};

// The pool tenants/default/pools/default, which needs no controller.
struct PoolConfig {
  bool trusted = true;  // workers may access client memory themselves
  bool remap_allowed = true;
  LimitsConfig limits;
  bool operator==(const PoolConfig&) const = default;
};

// Settings between gateways.
struct GatewaysConfig {
  bool discovery = true;
  bool channels = true;
  uint32_t paths = 1;
  uint32_t vendor_id = wire::kDefaultVendorId;  // locally administered OUI
  PeerAuthentication authentication = PeerAuthentication::kPreferred;
  std::string key_file;  // with keys of the fleet; empty: no keys
  FrameProtection protection = FrameProtection::kOff;
  bool operator==(const GatewaysConfig&) const = default;
};

// How workers wait for work and are scheduled (base/timing/wait_policy.h,
// worker/schedule/thread_scheduling.h).
struct WaitingConfig {
  WaitMode mode = WaitMode::kAdaptive;
  uint32_t yield_after_us = 8;
  uint32_t sleep_after_us = 50;
  uint32_t slice_us = 0;
  uint32_t realtime_priority = 0;
  bool keep_processors_awake = false;
  bool operator==(const WaitingConfig&) const = default;
};

// Use of a copy engine (memory/copy_engine.h).
enum class CopyEngineMode : uint8_t { kOff, kAuto, kOn };
struct CopyEngineConfig {
  CopyEngineMode mode = CopyEngineMode::kOff;
  std::vector<std::string> devices;  // empty: all
  uint32_t minimum_bytes = 0;        // 0: measured at start
  bool operator==(const CopyEngineConfig&) const = default;
};

struct Config {
  uint32_t workers = 0;  // 0: a quarter of the processors, at least one
  bool pin_workers = false;
  WaitingConfig waiting;
  bool guest_rounds = false;  // polling threads may run a worker's rounds; in-process gateways only
  std::vector<PortConfig> ports = {PortConfig{}};
  CopyEngineConfig copy_engine;
  uint64_t window_bytes = 0;  // limit in flight per flow; 0: derived from the port's receive buffer
  GatewaysConfig gateways;
  // FLUSH and ATOMIC WRITE, towards RDMA devices and gateways.
  MemoryPlacement memory_placement = MemoryPlacement::kDisabled;
  flow::CcKind native_congestion = flow::CcKind::kDcqcn;  // for connections to RDMA devices
  flow::CcProfile congestion;                             // without the link speed
  flow::CcPolicy congestion_policy;                       // no rules: native_congestion stays
  // Algorithms that channels may use, as wire::GatewayOption bits.
  uint32_t channel_congestion = wire::kOptionCcStatic * ((1u << flow::kCcKinds) - 1);
  flow::CcPolicy channel_policy;  // no rules: the preferred one of them stays
  PoolConfig default_pool;
  bool operator==(const Config&) const = default;
};

// Returns the number of workers to start on a machine with so many processors.
uint32_t EffectiveWorkers(const Config& config, uint32_t processors);

const char* PortModeName(PortMode mode);

}  // namespace rocegw::datapath
