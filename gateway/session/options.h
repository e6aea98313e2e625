// SPDX-License-Identifier: Apache-2.0
// What the daemon tells the session layer at its start: limits, policy of the default pool, and the
// devices that clients see. Plain values; devices may change while running, the rest does not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/base/memory_placement.h"
#include "gateway/base/time.h"
#include "gateway/tenant/amounts.h"
#include "gateway/tenant/settings.h"
#include "gateway/verbs/work_request.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/wire/gid.h"

namespace rocegw::session {

using tenant::Resource;

// The pool of the main attach socket; exists without any configuration.
inline constexpr char kDefaultPool[] = "tenants/default/pools/default";

// What the gateway has for all pools together; beyond: ENOMEM.
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
  uint64_t descriptors = tenant::kUnlimited;  // of the process, less what the daemon keeps
};

// What one session may do, whatever the pool allows.
struct SessionBounds {
  uint32_t contexts = 4096;        // each has an event channel, too
  uint32_t event_channels = 4096;  // descriptors that the daemon holds for it
  // More are not read until their time comes. Sessions take turns anyway: this is what a core does.
  uint32_t requests_per_second = 250000;
  uint32_t request_burst = 25000;
  Duration hello_within = Seconds(5);
};

// Sizes that clients read with query_device.
struct DeviceBounds {
  uint32_t max_qp_wr = 16384;
  uint32_t max_sge = 16;
  uint32_t max_inline = 1024;
  uint32_t max_cqe = uint32_t{1} << 20;
  uint32_t max_rd_atomic = 16;
  uint64_t max_mr_size = uint64_t{1} << 47;  // all of a user address space
  uint32_t max_message = verbs::kMaxMessage;
  uint32_t max_multicast = 1024;  // attachments to groups, of one session
};

inline constexpr uint32_t kVendorId = wire::kDefaultVendorId;
inline constexpr uint32_t kVendorPartId = 1;

// One verbs device: a port of the gateway.
struct Device {
  std::string name;       // "rocegw0"
  std::string interface;  // netdev; empty: none
  uint32_t interface_index = 0;
  uint64_t node_guid = 0;  // the eight bytes in network order
  uint8_t active_mtu = 3;  // enum ibv_mtu: largest payload that fits the interface
  bool up = true;
  std::vector<wire::Gid> gids;         // by index; zero: unused
  uint32_t interface_mtu = 1500;       // bytes of IP packet
  uint64_t link_bytes_per_second = 0;  // 0: the interface does not tell
};

// What is between gateways (cm/path/discovery.h, cm/connection/negotiation.h).
struct PeerGateways {
  bool discovery = true;  // find out which peers are gateways, and tell them that we are
  bool channels = false;  // offer them channels
  uint32_t vendor_id = kVendorId;
  // Of channels: with the kinds of congestion control that they may have.
  uint32_t features = wire::kOptionSelectiveAck | wire::kOptionOrdering | wire::kOptionEndpoints |
                      wire::kOptionEndpointReads | wire::kOptionInvalidation |
                      wire::kOptionCcStatic;
  uint32_t window = 0;  // bytes that one worker can take at once
  uint32_t paths = 1;   // channels to the same worker, over which queue pairs are spread
};

enum class MemoryWay : uint8_t {
  kAuto,        // cross-process for our own user, else the descriptor
  kDescriptor,  // always the descriptor
  kOwn,         // programs are this process
};

struct Options {
  std::string version;     // of the daemon
  std::string sysfs_root;  // tree with the shape of /sys, empty: none
  std::string slots_dir;   // of the attach sockets of slots; empty: none
  // Of the default pool.
  bool trusted = true;  // workers may touch client memory themselves
  bool remap_allowed = true;
  MemoryWay memory_way = MemoryWay::kAuto;
  Limits limits;
  SessionBounds session;
  DeviceBounds device;
  PeerGateways gateways;
  // Whose devices have FLUSH and ATOMIC WRITE.
  MemoryPlacement placement = MemoryPlacement::kDisabled;
  // How long an attach to a pool with `identity: REQUIRED` waits for a verdict.
  Duration verdict_within = Seconds(5);
  // How long a container's program may take from its start to its attach before that is told.
  Duration expected_within = Seconds(120);
  // How long after something was taken from a reserve it is filled up again: longer than it takes
  // to connect a queue pair, so that this does not fall into it.
  Duration refill_after = Milliseconds(2);
};

// As the quota tree has it; what limits do not name is unlimited.
tenant::Amounts CapacityOf(const Limits& limits);
// The default pool when no configuration says anything about it.
tenant::PoolSettings DefaultPool(const Options& options);

}  // namespace rocegw::session
