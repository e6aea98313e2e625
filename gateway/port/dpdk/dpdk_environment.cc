// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/dpdk/dpdk_environment.h"

#include <dirent.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace rocegw::port {
namespace {

// Address that no machine gives to a device.
constexpr char kNoPciDevice[] = "ffff:ff:1f.7";

uint64_t ReadNumber(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  char text[32] = "";
  const bool read = std::fgets(text, sizeof text, file) != nullptr;
  (void)std::fclose(file);
  return read ? std::strtoull(text, nullptr, 10) : 0;
}

// Counts huge pages of any size; DPDK uses them all.
uint64_t FreeHugePageBytes() {
  constexpr char kRoot[] = "/sys/kernel/mm/hugepages";
  DIR* directory = opendir(kRoot);
  if (directory == nullptr) return 0;
  uint64_t bytes = 0;
  while (const dirent* entry = readdir(directory)) {
    unsigned long long kilobytes = 0;
    if (std::sscanf(entry->d_name, "hugepages-%llukB", &kilobytes) != 1) continue;
    bytes +=
        ReadNumber(std::string(kRoot) + "/" + entry->d_name + "/free_hugepages") * kilobytes * 1024;
  }
  closedir(directory);
  return bytes;
}

Status Start(const DpdkEnvironment& environment, std::FILE* log) {
  cpu_set_t affinity;
  CPU_ZERO(&affinity);
  (void)pthread_getaffinity_np(pthread_self(), sizeof affinity, &affinity);
  int first = 0;
  while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &affinity)) ++first;

  std::vector<std::string> arguments = {"rocegwd", "--no-telemetry", "--log-level=*:error", "-l",
                                        std::to_string(first)};
  // With an allowlist DPDK opens no PCI device by itself; a port adds its own device later.
  if (environment.pci) {
    arguments.insert(arguments.end(), {"-a", kNoPciDevice});
  } else {
    arguments.emplace_back("--no-pci");
  }
  // In both cases nothing is shared with other DPDK processes and no file remains. With too few
  // huge pages the start would fail later, when DPDK cannot fall back to normal pages.
  const bool huge_pages =
      environment.huge_pages && FreeHugePageBytes() >= uint64_t{environment.memory_mb} << 20;
  if (huge_pages) {
    arguments.emplace_back("--in-memory");
  } else {
    arguments.insert(arguments.end(),
                     {"--no-huge", "--no-shconf", "-m", std::to_string(environment.memory_mb)});
  }
  for (const std::string& argument : environment.arguments) arguments.push_back(argument);
  std::vector<char*> pointers;
  pointers.reserve(arguments.size());
  for (std::string& argument : arguments) pointers.push_back(argument.data());

  if (log != nullptr) (void)rte_openlog_stream(log);
  const int result = rte_eal_init(static_cast<int>(pointers.size()), pointers.data());
  // DPDK binds the calling thread to one core, but this thread is not a DPDK worker.
  (void)pthread_setaffinity_np(pthread_self(), sizeof affinity, &affinity);
  if (result >= 0) return OkStatus();
  const std::string remedy =
      huge_pages ? "; to do without huge pages, set huge_pages: off under dpdk"
                 : "; check memory_mb and eal_args under dpdk and the limit on locked memory";
  return {rte_errno != 0 ? rte_errno : EIO,
          std::string("DPDK does not start: ") + rte_strerror(rte_errno) + remedy};
}

}  // namespace

Status StartDpdk(const DpdkEnvironment& environment, std::FILE* log) {
  static const Status kResult = Start(environment, log);
  return kResult;
}

void RegisterDpdkThread() {
  if (rte_lcore_id() == LCORE_ID_ANY) (void)rte_thread_register();
}

}  // namespace rocegw::port
