// SPDX-License-Identifier: Apache-2.0
#include "gateway/doctor/host_checks.h"

#include <cstdio>

#include "gateway/base/timing/silence.h"

namespace rocegw::doctor {
namespace {

using rules::Check;

// Descriptors of an attached program: its socket, segments of shared memory, channels of
// completions and events, the descriptor of its memory.
constexpr uint64_t kFilesOfSession = 32;
constexpr uint64_t kFilesOfDaemon = 1024;
// Beyond this, other limits are reached first.
constexpr uint64_t kEnoughFiles = 65536;

// Memory of the daemon that no quota counts: code, buffers of ports, worker and gRPC threads.
constexpr uint64_t kMemoryOfDaemon = 512u << 20;

// A worker answers within one round; slower answers mean that the host is short of CPUs.
constexpr Duration kSlowAnswer = Seconds(1);

constexpr uint32_t kWritableByOthers = 0022;
constexpr uint32_t kOpenToOthers = 0006;

std::string Limit(uint64_t limit) {
  return limit == UINT64_MAX ? "unlimited" : std::to_string(limit);
}

std::string MiB(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string Mode(uint32_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", mode);
  return text;
}

}  // namespace

Diagnosis CheckOpenFiles(const Facts& facts) {
  Check check("open_files", facts.gateway.gateway);
  const uint64_t limit = facts.host.open_files_limit;
  const uint64_t sessions = facts.gateway.sessions;
  const std::string found =
      std::to_string(facts.host.open_files) + " open, at most " + Limit(limit);
  const std::string remedy =
      "LimitNOFILE=1048576 in the unit, or ulimit -Hn 1048576 before it starts";
  if (limit == UINT64_MAX) return std::move(check).Ok(found);
  if (facts.host.open_files >= limit / 10 * 9) {
    return std::move(check).Fail(found, "no further program can attach when they are used up",
                                 remedy);
  }
  const uint64_t needed = sessions > kEnoughFiles / kFilesOfSession
                              ? kEnoughFiles
                              : kFilesOfDaemon + sessions * kFilesOfSession;
  if (limit < needed) {
    return std::move(check).Warn(
        found,
        "with as many programs as may attach, about " + std::to_string(needed) + " are needed",
        remedy);
  }
  return std::move(check).Ok(found);
}

Diagnosis CheckMemoryLimit(const Facts& facts) {
  Check check("memory_limit", facts.gateway.gateway);
  const uint64_t limit = facts.host.memory_limit;
  if (limit == UINT64_MAX) return std::move(check).Ok("no control group limits it");
  const uint64_t quotas = facts.gateway.chargeable_memory;
  const std::string found = "at most " + MiB(limit) + "; programs may cause " +
                            (quotas == UINT64_MAX ? "any amount" : MiB(quotas)) +
                            ", the daemon needs " + MiB(kMemoryOfDaemon);
  if (limit >= kMemoryOfDaemon && limit - kMemoryOfDaemon >= quotas)
    return std::move(check).Ok(found);
  return std::move(check).Warn(
      found, "the kernel can kill the daemon, and all queue pairs with it, within the quotas",
      "lower heap_bytes, segment_bytes and remapped_bytes of the gateway's limits, or raise the "
      "limit (MemoryMax in the unit, limits.memory of the pod)");
}

Diagnosis CheckLockedMemory(const Facts& facts) {
  Check check("locked_memory", facts.gateway.gateway);
  const uint64_t limit = facts.host.locked_memory_limit;
  const uint64_t wanted = facts.gateway.locked_memory;
  if (wanted == 0) return std::move(check).Ok("no port locks memory");
  const std::string found = "at most " + (limit == UINT64_MAX ? "unlimited" : MiB(limit)) +
                            ", the ports may lock " + MiB(wanted);
  if (limit >= wanted) return std::move(check).Ok(found);
  return std::move(check).Warn(
      found, "ports that lock their memory (mode af_xdp, drivers of DPDK) do not start",
      "LimitMEMLOCK=infinity in the unit, or grant CAP_IPC_LOCK");
}

Diagnosis CheckHugePages(const Facts& facts) {
  Check check("huge_pages", facts.gateway.gateway);
  if (!facts.gateway.huge_pages) return std::move(check).Ok("no port uses them");
  if (facts.host.huge_pages == 0) {
    return std::move(check).Warn("none are reserved",
                                 "DPDK runs on ordinary pages (dpdk.memory_mb), which is slower",
                                 "sysctl -w vm.nr_hugepages=256, then restart rocegwd");
  }
  // The free pages come on top of those that DPDK took at its start.
  return std::move(check).Ok(std::to_string(facts.host.huge_pages) + " reserved, " +
                             MiB(facts.host.free_huge_page_bytes) + " free");
}

Diagnosis CheckProcessors(const Facts& facts) {
  Check check("processors", facts.gateway.gateway);
  const std::string found = std::to_string(facts.gateway.workers.size()) + " workers, " +
                            std::to_string(facts.host.processors) + " processors";
  if (facts.gateway.workers.size() <= facts.host.processors) return std::move(check).Ok(found);
  return std::move(check).Warn(found, "workers take turns on a processor: latency grows",
                               "lower `workers` to at most " +
                                   std::to_string(facts.host.processors) +
                                   ", or give the service more processors");
}

namespace {

// Returns which workers use a copy engine, behind what is said of them; empty: none is configured.
std::string EnginesOf(const GatewayFacts& gateway) {
  if (!gateway.copy_engine) return "";
  std::string used;
  for (size_t i = 0; i < gateway.engine_minimums.size(); ++i) {
    if (gateway.engine_minimums[i] == 0) continue;
    used += (used.empty() ? "worker " : ", worker ") + std::to_string(i) + " from " +
            std::to_string(gateway.engine_minimums[i]) + " bytes on";
  }
  return used.empty() ? "; none uses a copy engine" : "; by copy engine copy " + used;
}

}  // namespace

Diagnosis CheckWorkers(const Facts& facts) {
  Check check("workers", facts.gateway.gateway);
  const std::string found = SilentWorker(facts.gateway.workers, kSlowAnswer);
  if (found.empty()) return std::move(check).Ok("all of them answer" + EnginesOf(facts.gateway));
  return std::move(check).Fail(
      found, "its queue pairs stand still, and what only it knows cannot be shown",
      "free its processor or give the service more; where that does not help: gdb -p the process, "
      "`thread apply all bt`, then restart rocegwd");
}

Diagnosis CheckEgress(const Facts& facts) {
  Check check("egress", facts.gateway.gateway);
  switch (facts.host.egress) {
    case EgressGuard::kGuarded:
      return std::move(check).Ok("programs of other users cannot send to UDP 4791");
    case EgressGuard::kNotTried:
      return std::move(check).Ok(
          "not tried without CAP_SETUID; `nft list table inet rocegw_egress` shows the rules");
    case EgressGuard::kOpen:
      break;
  }
  return std::move(check).Warn(
      "every program of this host can send to UDP 4791",
      "with the gateway's address as source, it speaks to other gateways as if it were this one",
      "nft --define gateway=" + std::to_string(facts.host.uid) +
          " -f /usr/share/rocegw/rocegw-egress.nft");
}

Diagnosis CheckClock(const Facts& facts) {
  Check check("clock", facts.gateway.gateway);
  const ClockFacts& clock = facts.host.clock;
  if (!clock.known) {
    return std::move(check).Warn("the kernel does not tell whether the clock is right",
                                 "certificates and logs of hosts do not agree if it is not",
                                 "timedatectl status");
  }
  if (!clock.synchronised) {
    return std::move(check).Warn("not synchronised",
                                 "certificates count as not yet or no longer valid when clocks "
                                 "part, and logs cannot be compared",
                                 "start chrony or systemd-timesyncd");
  }
  return std::move(check).Ok("synchronised, at most " +
                             std::to_string(clock.worst_error_ns / 1000000) + " ms off");
}

Diagnosis CheckSendBuffer(const Facts& facts) {
  Check check("send_buffer", facts.gateway.gateway);
  const uint64_t wanted = facts.gateway.send_buffer;
  if (wanted == 0) return std::move(check).Ok("no port has sockets for sending");
  if (facts.host.may_administer_network || !facts.host.send_buffer_limit.has_value()) {
    return std::move(check).Ok(MiB(wanted) + " for each socket");
  }
  const uint64_t limit = *facts.host.send_buffer_limit;
  if (limit >= wanted) return std::move(check).Ok("net.core.wmem_max is " + std::to_string(limit));
  return std::move(check).Warn(
      "net.core.wmem_max is " + std::to_string(limit) + ", " + std::to_string(wanted) +
          " is asked for",
      "workers stop sending more often until the kernel has sent",
      "sysctl -w net.core.wmem_max=" + std::to_string(wanted) + ", or grant CAP_NET_ADMIN");
}

Diagnosis CheckProcessMemory(const Facts& facts) {
  Check check("process_memory", facts.gateway.gateway);
  const std::string user = "user " + std::to_string(facts.host.uid);
  if (facts.host.may_trace) {
    return std::move(check).Ok("across processes for programs of " + user + ", CAP_SYS_PTRACE");
  }
  if (facts.host.ptrace_scope > 0) {
    return std::move(check).Warn(
        "kernel.yama.ptrace_scope is " + std::to_string(facts.host.ptrace_scope) +
            " and CAP_SYS_PTRACE is missing",
        "memory of programs is reached by their descriptors, one system call for each piece",
        "grant CAP_SYS_PTRACE, or sysctl -w kernel.yama.ptrace_scope=0");
  }
  return std::move(check).Ok("across processes for programs of " + user);
}

Diagnosis CheckRemapping(const Facts& facts) {
  Check check("remapping", facts.gateway.gateway);
  const HostFacts& host = facts.host;
  const char* const slower = "registered memory is reached by system calls instead of copied";
  if (!facts.gateway.remap_allowed) return std::move(check).Ok("no pool allows it");
  if (host.userfaultfd_old) {
    return std::move(check).Warn("the kernel is older than 6.4", slower, "a newer kernel");
  }
  if (host.strict_overcommit) {
    return std::move(check).Warn("vm.overcommit_memory is 2", slower,
                                 "sysctl -w vm.overcommit_memory=0");
  }
  if (!host.userfaultfd_device && !host.unprivileged_userfaultfd) {
    return std::move(check).Warn("/dev/userfaultfd cannot be opened", slower,
                                 "give the user of rocegwd the device (mode 0660, its group), or "
                                 "sysctl -w vm.unprivileged_userfaultfd=1");
  }
  return std::move(check).Ok(host.userfaultfd_device ? "/dev/userfaultfd can be opened"
                                                     : "vm.unprivileged_userfaultfd is 1");
}

Diagnosis CheckTrustedPools(const Facts& facts) {
  Check check("trusted_pools", facts.gateway.gateway);
  const std::vector<std::string>& trusted = facts.gateway.trusted_pools;
  if (trusted.empty()) return std::move(check).Ok("none");
  const std::string found =
      trusted.size() == 1
          ? trusted[0] + " is trusted"
          : trusted[0] + " and " + std::to_string(trusted.size() - 1) + " other pools are trusted";
  if (facts.gateway.pools.size() == 1) return std::move(check).Ok(found + "; it is the only pool");
  return std::move(check).Warn(
      found + ", beside " + std::to_string(facts.gateway.pools.size() - 1) + " other pools",
      "a program of a trusted pool can stop a worker, and with it programs of all pools",
      "default_pool.trusted: false in rocegwd.yaml, memory.trusted: false in other pools");
}

Diagnosis CheckRuntimeDir(const Facts& facts) {
  Check check("runtime_dir", facts.gateway.gateway);
  const FileState& state = facts.host.runtime_dir;
  const std::string& path = facts.gateway.runtime_dir;
  if (!state.exists) {
    return std::move(check).Fail(path + ": " + state.error, "programs find no socket to attach to",
                                 "restart rocegwd, and see who removes what is in /run");
  }
  const std::string found =
      path + ", mode " + Mode(state.mode) + ", of user " + std::to_string(state.uid);
  if ((state.mode & kWritableByOthers) != 0) {
    return std::move(check).Fail(found, "others may put their own sockets in the place of these",
                                 "chmod go-w " + path);
  }
  if (state.uid != facts.host.uid && state.uid != 0) {
    return std::move(check).Warn(found, "its owner may replace the sockets",
                                 "chown " + std::to_string(facts.host.uid) + " " + path);
  }
  return std::move(check).Ok(found);
}

Diagnosis CheckSockets(const Facts& facts) {
  Check check("sockets", facts.gateway.gateway);
  for (const SocketFile& socket : facts.gateway.sockets) {
    const auto known = facts.host.sockets.find(socket.path);
    if (known == facts.host.sockets.end()) continue;
    const FileState& state = known->second;
    if (!state.exists || !state.socket) {
      return std::move(check).Fail(
          socket.path + ": " + (state.exists ? "is no socket" : state.error),
          socket.attach ? "programs cannot attach" : "agent and rocegwctl cannot connect",
          "restart rocegwd, and see who removes what is in /run");
    }
    if (state.mode != socket.mode) {
      return std::move(check).Warn(
          socket.path + " has mode " + Mode(state.mode) + ", configured is " + Mode(socket.mode),
          "somebody has changed who may connect", "chmod " + Mode(socket.mode) + " " + socket.path);
    }
    if (!socket.attach && (state.mode & kOpenToOthers) != 0) {
      return std::move(check).Warn(socket.path + " has mode " + Mode(state.mode),
                                   "every user of the host may drain and reconfigure the gateway",
                                   "grpc_socket.mode: 0600");
    }
  }
  return std::move(check).Ok(std::to_string(facts.gateway.sockets.size()) +
                             " sockets with the modes that are configured");
}

Diagnosis CheckLibraries(const Facts& facts) {
  Check check("libraries", facts.gateway.gateway);
  uint32_t older = 0;
  uint32_t newer = 0;
  std::string first;
  for (const LibraryFacts& library : facts.gateway.libraries) {
    if (library.minor == facts.gateway.library_minor) continue;
    (library.minor < facts.gateway.library_minor ? older : newer) += 1;
    if (first.empty()) first = library.command + " (pid " + std::to_string(library.pid) + ")";
  }
  const size_t attached = facts.gateway.libraries.size();
  const std::string programs =
      std::to_string(attached) + (attached == 1 ? " program" : " programs") + " attached";
  if (older + newer == 0) {
    return std::move(check).Ok("rocegwd " + facts.gateway.version + ", " + programs +
                               (facts.gateway.libraries.empty() ? "" : ", all with its version"));
  }
  if (newer != 0) {
    return std::move(check).Warn(
        std::to_string(newer) + " of " + programs + " with a newer library, " + first,
        "what the library has more than the daemon is not used",
        "upgrade rocegwd: a restart ends queue pairs, drain first");
  }
  return std::move(check).Warn(
      std::to_string(older) + " of " + programs + " with an older library, " + first,
      "what the daemon has more than the library is not used, and faults of it stay",
      "start these programs anew");
}

}  // namespace rocegw::doctor
