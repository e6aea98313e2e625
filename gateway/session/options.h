// SPDX-License-Identifier: Apache-2.0
// Settings that the daemon gives the session layer at its start: limits, policy of the default
// pool, and the devices of clients. Plain values; devices may change at run time, the rest does
// not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/base/memory_placement.h"
#include "gateway/base/time.h"
#include "gateway/device_memory/open_devices.h"
#include "gateway/memory/dma_buf.h"
#include "gateway/tenant/amounts.h"
#include "gateway/tenant/settings.h"
#include "gateway/verbs/work_request.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/wire/gid.h"

namespace rocegw::session {

using tenant::Resource;

// Pool of the main attach socket; exists without any configuration.
inline constexpr char kDefaultPool[] = "tenants/default/pools/default";

// Limits of the gateway for all pools together; beyond: ENOMEM.
struct Limits {
  uint64_t sessions = 256;
  uint64_t qps = 65536;
  uint64_t cqs = 65536;
  uint64_t srqs = 65536;
  uint64_t mrs = 262144;
  uint64_t pds = 16384;
  uint64_t cm_ids = 65536;
  uint64_t registered_bytes = uint64_t{1} << 40;
  uint64_t segment_bytes = uint64_t{8} << 30;
  uint64_t heap_bytes = uint64_t{8} << 30;
  uint64_t remapped_bytes = uint64_t{1} << 40;
  uint64_t descriptors =
      tenant::kUnlimited;  // limit of the process, without those that the daemon keeps
};

// Limits of one session, whatever the pool allows.
struct SessionBounds {
  uint32_t contexts = 4096;        // each has an event channel, too
  uint32_t event_channels = 4096;  // each costs descriptors of the daemon
  // Requests beyond this rate are read later. Sessions are served round-robin anyway: this is the
  // rate of one core.
  uint32_t requests_per_second = 250000;
  uint32_t request_burst = 25000;
  // Programs of one attach socket that attach beyond this rate wait in connect(). Everything that a
  // program leaves behind costs the gateway's host more than the program paid for its start.
  uint32_t attaches_per_second = 250;
  uint32_t attach_burst = 1000;
  Duration hello_within = Seconds(5);
};

// Sizes that clients read with query_device.
struct DeviceBounds {
  uint32_t max_qp_wr = 16384;
  uint32_t max_sge = 16;
  uint32_t max_inline = 1024;
  uint32_t max_cqe = uint32_t{1} << 20;
  uint32_t max_rd_atomic = 16;
  uint64_t max_mr_size = uint64_t{1} << 47;  // the whole user address space
  uint32_t max_message = verbs::kMaxMessage;
  // Attachments of one session to groups, and of one pool to a group.
  uint32_t max_multicast = 1024;
};

inline constexpr uint32_t kVendorId = wire::kDefaultVendorId;
inline constexpr uint32_t kVendorPartId = 1;

// Verbs device: a port of the gateway.
struct Device {
  std::string name;       // "rocegw0"
  std::string interface;  // netdev; empty: none
  uint32_t interface_index = 0;
  uint64_t node_guid = 0;  // eight bytes in network order
  uint8_t active_mtu = 3;  // enum ibv_mtu: largest payload that fits the interface
  bool up = true;
  std::vector<wire::Gid> gids;         // by index; zero: unused
  uint32_t interface_mtu = 1500;       // bytes of IP packet
  uint64_t link_bytes_per_second = 0;  // 0: unknown
};

// Settings towards other gateways (cm/path/discovery.h, cm/connection/negotiation.h).
struct PeerGateways {
  bool discovery = true;  // find out which peers are gateways, and answer their questions
  bool channels = false;  // offer channels to them
  uint32_t vendor_id = kVendorId;
  // Channel options, with the allowed kinds of congestion control.
  uint32_t features = wire::kOptionSelectiveAck | wire::kOptionOrdering | wire::kOptionEndpoints |
                      wire::kOptionEndpointReads | wire::kOptionInvalidation |
                      wire::kOptionBundles | wire::kOptionFetchOperate | wire::kOptionCcStatic;
  uint32_t window = 0;  // bytes in flight that one worker accepts
  uint32_t paths = 1;   // channels to the same worker, over which queue pairs are distributed
};

enum class MemoryWay : uint8_t {
  kAuto,        // cross-process for our own user, else the descriptor
  kDescriptor,  // always the descriptor
  kOwn,         // programs run in this process
};

struct Options {
  std::string version;        // version of the daemon
  std::string sysfs_root;     // tree in the layout of /sys; empty: none
  bool awaits_state = false;  // takes the place of another gateway: HandOver comes before sessions
  std::string slots_dir;      // directory of the slots' attach sockets; empty: none
  // Limits of the slots' sockets, each of which is one of the daemon's descriptors.
  size_t most_slots = 64 << 10;
  size_t most_slots_of_tenant = 8 << 10;
  // Policy of the default pool.
  bool trusted = true;  // workers may access client memory themselves
  bool remap_allowed = true;
  MemoryWay memory_way = MemoryWay::kAuto;
  device_memory::DriverLibraries drivers;  // loaded when a program registers a GPU's memory
  // Makes all calls of drivers of GPUs; empty: any thread does.
  device_memory::CallDriver call_driver;
  // Inspection of descriptors that programs register as dma-bufs.
  StatusOr<memory::DmaBuf> (*inspect_dma_buf)(int fd) = memory::InspectDmaBuf;
  Limits limits;
  SessionBounds session;
  DeviceBounds device;
  PeerGateways gateways;
  // Pools whose devices have FLUSH and ATOMIC WRITE.
  MemoryPlacement placement = MemoryPlacement::kDisabled;
  // Time limit of a verdict for an attach to a pool with `identity: REQUIRED`.
  Duration verdict_within = Seconds(5);
  // Time from a container's start to its program's attach after which an event is reported.
  Duration expected_within = Seconds(120);
  // Delay between a use of a reserve and its refill: longer than connecting a queue pair takes, so
  // that the refill does not delay it.
  Duration refill_after = Milliseconds(2);
};

// Returns the capacity for the quota tree; resources without a limit are unlimited.
tenant::Amounts CapacityOf(const Limits& limits);
// Returns the default pool without any configuration.
tenant::PoolSettings DefaultPool(const Options& options);

}  // namespace rocegw::session
