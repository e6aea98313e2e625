// SPDX-License-Identifier: Apache-2.0
#include "gateway/doctor/read_host.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "gateway/base/port_holders.h"
#include "gateway/base/unique_fd.h"
#include "gateway/doctor/egress_trial.h"
#include "gateway/doctor/read_neighbours.h"
#include "gateway/doctor/small_file.h"
#include "gateway/wire/datagram.h"

namespace rocegw::doctor {
namespace {

namespace fs = std::filesystem;

uint64_t ResourceLimit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

uint64_t EntriesOf(const fs::path& directory) {
  uint64_t count = 0;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    ++count;
  return count;
}

uint32_t Processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  return static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
}

void ReadHugePages(const std::string& sys, HostFacts& facts) {
  std::error_code error;
  for (fs::directory_iterator at(sys + "/kernel/mm/hugepages", error), end; !error && at != end;
       at.increment(error)) {
    const std::string folder = at->path().string();
    unsigned long long kilobytes = 0;
    if (std::sscanf(at->path().filename().c_str(), "hugepages-%llukB", &kilobytes) != 1) continue;
    facts.huge_pages += ReadNumberFile(folder + "/nr_hugepages").value_or(0);
    facts.free_huge_page_bytes +=
        ReadNumberFile(folder + "/free_hugepages").value_or(0) * (kilobytes << 10);
  }
}

void ReadRxeDevices(const std::string& sys, HostFacts& facts) {
  std::error_code error;
  for (fs::directory_iterator at(sys + "/class/infiniband", error), end; !error && at != end;
       at.increment(error)) {
    // Only devices without hardware have this file, which names their interface.
    if (fs::exists(at->path() / "parent", error))
      facts.rxe_devices.push_back(at->path().filename().string());
  }
}

// Control groups of version 2. Within a namespace of control groups those outside are not visible.
uint64_t MemoryLimit(const Roots& roots) {
  const std::string own = ReadSmallFile(roots.proc + "/self/cgroup");
  const size_t at = own.find("0::/");
  if (at == std::string::npos) return UINT64_MAX;
  const fs::path top = roots.sys + "/fs/cgroup";
  uint64_t limit = UINT64_MAX;
  // "max" is no number.
  for (fs::path group = fs::path(FirstLine(own.substr(at + 4)));; group = group.parent_path()) {
    limit = std::min(limit, ReadNumberFile((top / group / "memory.max").string()).value_or(limit));
    if (group.empty()) return limit;
  }
}

ClockFacts ReadClock() {
  timex clock{};
  ClockFacts facts;
  const int state = adjtimex(&clock);
  facts.known = state >= 0;
  facts.synchronised = state >= 0 && state != TIME_ERROR && (clock.status & STA_UNSYNC) == 0;
  facts.worst_error_ns = int64_t{clock.maxerror} * 1000;
  return facts;
}

FileState LookAt(const std::string& path) {
  FileState state;
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    state.error = strerror(errno);
    return state;
  }
  state.exists = true;
  state.socket = S_ISSOCK(found.st_mode);
  state.mode = found.st_mode & 07777;
  state.uid = found.st_uid;
  return state;
}

InterfaceFacts LookAtInterface(const std::string& name) {
  InterfaceFacts facts;
  auto features = port::ReadFeatures(name);
  if (features.ok()) facts.features = std::move(*features);
  ReadNeighbours(name, facts);
  return facts;
}

}  // namespace

uint64_t EffectiveCapabilities(const std::string& status) {
  const size_t at = status.find("CapEff:");
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + std::strlen("CapEff:"), nullptr, 16);
}

bool IsBefore(const std::string& release, int major, int minor) {
  int is_major = 0;
  int is_minor = 0;
  if (std::sscanf(release.c_str(), "%d.%d", &is_major, &is_minor) != 2) return false;
  return is_major != major ? is_major < major : is_minor < minor;
}

HostFacts ReadHost(const GatewayFacts& gateway, const Roots& roots) {
  const std::string sysctl = roots.proc + "/sys";
  HostFacts facts;
  facts.open_files = EntriesOf(roots.proc + "/self/fd");
  facts.open_files_limit = ResourceLimit(RLIMIT_NOFILE);
  facts.locked_memory_limit = ResourceLimit(RLIMIT_MEMLOCK);
  facts.memory_limit = MemoryLimit(roots);
  facts.processors = Processors();
  ReadHugePages(roots.sys, facts);
  const uint64_t may = EffectiveCapabilities(ReadSmallFile(roots.proc + "/self/status"));
  facts.may_administer_network = (may >> CAP_NET_ADMIN & 1) != 0;
  facts.may_trace = (may >> CAP_SYS_PTRACE & 1) != 0;
  if ((may >> CAP_IPC_LOCK & 1) != 0) facts.locked_memory_limit = UINT64_MAX;
  facts.uid = geteuid();
  facts.egress = TryEgress();
  facts.send_buffer_limit = ReadNumberFile(sysctl + "/net/core/wmem_max");
  facts.ptrace_scope =
      static_cast<int>(ReadNumberFile(sysctl + "/kernel/yama/ptrace_scope").value_or(0));
  facts.userfaultfd_device =
      UniqueFd(open((roots.dev + "/userfaultfd").c_str(), O_RDWR | O_CLOEXEC)).valid();
  facts.unprivileged_userfaultfd =
      ReadNumberFile(sysctl + "/vm/unprivileged_userfaultfd").value_or(0) != 0;
  facts.userfaultfd_old = IsBefore(ReadSmallFile(sysctl + "/kernel/osrelease"), 6, 4);
  facts.strict_overcommit = ReadNumberFile(sysctl + "/vm/overcommit_memory").value_or(0) == 2;
  facts.clock = ReadClock();
  facts.udp_port =
      FindPortHolders(roots.proc, roots.proc + "/net", PortKind::kUdp, wire::kRocePort);
  ReadRxeDevices(roots.sys, facts);
  facts.runtime_dir = LookAt(gateway.runtime_dir);
  for (const SocketFile& socket : gateway.sockets) facts.sockets[socket.path] = LookAt(socket.path);
  for (const PortFacts& port : gateway.ports) {
    if (!port.interface.empty()) facts.interfaces[port.interface] = LookAtInterface(port.interface);
  }
  return facts;
}

}  // namespace rocegw::doctor
