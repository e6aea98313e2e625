// SPDX-License-Identifier: Apache-2.0
// What the checks look at, as plain values: what a gateway knows of itself, copied on its control
// thread, and what its host says. Bytes and nanoseconds unless named otherwise.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/port/kernel/interface_features.h"
#include "gateway/wire/gid.h"

namespace rocegw::doctor {

// One verbs device.
struct PortFacts {
  std::string name;       // as in the configuration
  std::string mode;       // "udp", "af_packet", "vdev"
  std::string interface;  // empty: the kernel does not know the device
  bool up = false;
  std::string note;  // why it is not, or what else is wrong, with the remedy; empty: nothing
  uint32_t interface_mtu = 0;
  uint32_t path_mtu = 0;              // largest RoCE payload that fits
  uint32_t longer_qps = 0;            // queue pairs with a path MTU that does not fit any more
  uint32_t longest_path_mtu = 0;      // of these
  uint64_t receive_buffer_asked = 0;  // of each socket; 0: it has none
  uint64_t receive_buffer = 0;        // as granted
  uint64_t receive_overflows = 0;     // packets, since the start
};

// A program that is attached.
struct LibraryFacts {
  int32_t pid = 0;
  std::string command;
  uint32_t minor = 0;  // version of the attach protocol that its library speaks
};

struct SocketFile {
  std::string path;
  uint32_t mode = 0;  // permission bits that it should have
  bool attach = false;
};

struct GatewayFacts {
  std::string gateway;  // "gateways/G"
  std::string version;
  std::vector<Duration> workers;  // how long each has owed answers without giving any
  uint64_t sessions = 0;          // at most so many; UINT64_MAX: not bounded
  bool remap_allowed = false;
  std::vector<std::string> pools;          // names
  std::vector<std::string> trusted_pools;  // those whose programs can stop a worker
  bool huge_pages = false;                 // DPDK takes them where there are any
  uint64_t locked_memory = 0;              // what DPDK may lock; 0: no port uses it
  uint64_t send_buffer = 0;                // asked of each sending socket; 0: there are none
  std::string runtime_dir;
  std::vector<SocketFile> sockets;
  std::vector<PortFacts> ports;
  uint32_t library_minor = 0;  // that the daemon speaks
  std::vector<LibraryFacts> libraries;
  bool wants_udp_port = false;  // UDP 4791 of the network namespace is to be its own
};

// A socket of UDP port 4791.
struct UdpPortHolder {
  bool own = false;  // of this process
  pid_t pid = 0;     // 0: no process that can be seen has it
  std::string command;
  uid_t uid = 0;
};

struct FileState {
  bool exists = false;
  bool socket = false;
  uint32_t mode = 0;
  uid_t uid = 0;
  std::string error;  // why it cannot be looked at; empty: nothing is wrong
};

struct InterfaceFacts {
  port::InterfaceFeatures features;
  std::vector<wire::Gid> failed_neighbours;  // routers among them
  std::vector<wire::Gid> failed_routers;     // of default routes
};

struct ClockFacts {
  bool known = false;
  bool synchronised = false;
  int64_t worst_error_ns = 0;
};

// Whether programs of other users can send to UDP 4791.
enum class EgressGuard : uint8_t { kNotTried, kOpen, kGuarded };

struct HostFacts {
  uint64_t open_files = 0;
  uint64_t open_files_limit = 0;  // UINT64_MAX: none
  uint64_t locked_memory_limit = 0;
  uint32_t processors = 0;  // that this process may use
  uint64_t huge_pages = 0;
  uint64_t free_huge_page_bytes = 0;
  bool may_administer_network = false;  // CAP_NET_ADMIN
  bool may_trace = false;               // CAP_SYS_PTRACE
  uid_t uid = 0;
  std::optional<uint64_t> send_buffer_limit;  // net.core.wmem_max, where it can be seen
  int ptrace_scope = 0;                       // Yama's; 0 also where there is none
  bool userfaultfd_device = false;            // /dev/userfaultfd can be opened
  bool unprivileged_userfaultfd = false;
  bool userfaultfd_old = false;  // a kernel before 6.4
  bool strict_overcommit = false;
  ClockFacts clock;
  EgressGuard egress = EgressGuard::kNotTried;
  std::vector<UdpPortHolder> udp_port;
  std::vector<std::string> rxe_devices;  // of soft-RoCE in this network namespace
  FileState runtime_dir;
  std::map<std::string, FileState> sockets;          // by path
  std::map<std::string, InterfaceFacts> interfaces;  // by name
};

struct Facts {
  GatewayFacts gateway;
  HostFacts host;
};

}  // namespace rocegw::doctor
