// SPDX-License-Identifier: Apache-2.0
// Input of the checks, as plain values: a gateway's data, copied on its control thread, and its
// host's data. Bytes and nanoseconds unless named otherwise.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/port_holders.h"
#include "gateway/base/time.h"
#include "gateway/port/kernel/interface_features.h"
#include "gateway/wire/gid.h"

namespace rocegw::doctor {

// Verbs device.
struct PortFacts {
  std::string name;       // name in the configuration
  std::string mode;       // "udp", "af_packet", "af_xdp", "pci", "vdev"
  std::string interface;  // empty: a device without a kernel interface
  bool up = false;
  std::string note;  // degradation and its remedy; empty: none
  uint32_t interface_mtu = 0;
  uint32_t path_mtu = 0;               // largest RoCE payload that fits
  uint32_t longer_qps = 0;             // queue pairs whose path MTU does not fit any more
  uint32_t longest_path_mtu = 0;       // longest path MTU of these
  uint32_t addresses_without_gid = 0;  // beyond the size of the GID table
  uint64_t receive_buffer_asked = 0;   // requested for each socket; 0: no sockets
  uint64_t receive_buffer = 0;         // as granted
  uint64_t receive_overflows = 0;      // packets, since the start
};

// Attached program.
struct LibraryFacts {
  int32_t pid = 0;
  std::string command;
  uint32_t minor = 0;  // minor version of its library's attach protocol
};

struct SocketFile {
  std::string path;
  uint32_t mode = 0;  // required permission bits
  bool attach = false;
};

struct GatewayFacts {
  std::string gateway;  // "gateways/G"
  std::string version;
  std::vector<Duration> workers;          // per worker: how long it has owed an answer
  std::vector<uint32_t> engine_minimums;  // per worker: shortest payload for the engine; 0: none
  uint64_t sessions = 0;                  // limit; UINT64_MAX: none
  uint64_t chargeable_memory = 0;  // bytes that all programs together may cause; UINT64_MAX: any
  bool remap_allowed = false;
  bool copy_engine = false;                // the configuration allows one
  std::vector<std::string> pools;          // names
  std::vector<std::string> trusted_pools;  // pools whose programs can block a worker
  bool huge_pages = false;                 // DPDK uses them if there are any
  uint64_t locked_memory = 0;              // bytes that its ports may lock; 0: none do
  uint64_t send_buffer = 0;                // requested for each sending socket; 0: no sockets
  std::string runtime_dir;
  std::vector<SocketFile> sockets;
  std::vector<PortFacts> ports;
  uint32_t library_minor = 0;  // minor version of the daemon's attach protocol
  std::vector<LibraryFacts> libraries;
  bool wants_udp_port = false;  // the daemon needs UDP 4791 of the network namespace
};

struct FileState {
  bool exists = false;
  bool socket = false;
  uint32_t mode = 0;
  uid_t uid = 0;
  std::string error;  // why it cannot be read; empty: no error
};

struct InterfaceFacts {
  port::InterfaceFeatures features;
  std::vector<wire::Gid> failed_neighbours;  // including routers
  std::vector<wire::Gid> failed_routers;     // routers of default routes
};

struct ClockFacts {
  bool known = false;
  bool synchronised = false;
  int64_t worst_error_ns = 0;
};

// Result of the test if programs of other users can send to UDP 4791.
enum class EgressGuard : uint8_t { kNotTried, kOpen, kGuarded };

struct HostFacts {
  uint64_t open_files = 0;
  uint64_t open_files_limit = 0;  // UINT64_MAX: none
  uint64_t locked_memory_limit = 0;
  uint64_t memory_limit =
      UINT64_MAX;           // least of the control groups of the process; UINT64_MAX: none
  uint32_t processors = 0;  // usable by this process
  uint64_t huge_pages = 0;
  uint64_t free_huge_page_bytes = 0;
  bool may_administer_network = false;  // CAP_NET_ADMIN
  bool may_trace = false;               // CAP_SYS_PTRACE
  uid_t uid = 0;
  std::optional<uint64_t> send_buffer_limit;  // net.core.wmem_max, if visible
  int ptrace_scope = 0;                       // value of Yama; 0 also without Yama
  bool userfaultfd_device = false;            // /dev/userfaultfd can be opened
  bool unprivileged_userfaultfd = false;
  bool userfaultfd_old = false;  // a kernel before 6.4
  bool strict_overcommit = false;
  ClockFacts clock;
  EgressGuard egress = EgressGuard::kNotTried;
  std::vector<PortHolder> udp_port;
  std::vector<std::string> rxe_devices;  // soft-RoCE devices in this network namespace
  FileState runtime_dir;
  std::map<std::string, FileState> sockets;          // by path
  std::map<std::string, InterfaceFacts> interfaces;  // by name
};

struct Facts {
  GatewayFacts gateway;
  HostFacts host;
};

}  // namespace rocegw::doctor
