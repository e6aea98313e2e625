// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/swap/swap.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "gateway/base/errno_status.h"
#include "gateway/far/program/session_page.h"
#include "gateway/far/program/swap/loop_device.h"
#include "gateway/far/program/swap/nbd_device.h"
#include "gateway/far/program/wait_for_stop.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/sd_notify.h"
#include "gateway/process/startup.h"

namespace rocegw::far {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStackBytes = 1 << 20;

// Makes the process independent of swap: its memory stays, its allocations start no I/O, and the
// kernel kills other processes first. Before any thread exists: threads inherit the properties. The
// latter two need CAP_SYS_RESOURCE, and are a precaution: without them a warning is logged.
Status StayInMemory() {
  // Locked memory counts in full: small stacks, few arenas, nothing that goes back and comes again.
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return ErrnoStatus("cannot lock memory");
  if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) != 0) {
    spdlog::warn("{}", ErrnoStatus("allocations may wait for swap: PR_SET_IO_FLUSHER").text());
  }
  const UniqueFd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr char kLast[] = "-1000";
  if (!score.valid() || write(score.get(), kLast, sizeof kLast - 1) < 0) {
    spdlog::warn("{}", ErrnoStatus("may be killed when memory is short: oom_score_adj").text());
  }
  return OkStatus();
}

// The file that holds the swap, with room for all of it.
StatusOr<UniqueFd> MakeFile(const std::string& path, uint64_t bytes) {
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus(path);
  if (fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0) return ErrnoStatus(path);
  const auto header = SwapHeader(bytes);
  if (pwrite(file.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) ||
      fsync(file.get()) != 0) {
    return ErrnoStatus(path);
  }
  return file;
}

// Swaps to the device and waits for a signal. The kernel takes all pages back before this returns.
Status SwapUntilStopped(const SwapArguments& arguments, const std::string& swap, int signals,
                        const process::ServiceManager& manager) {
  const int flags = arguments.priority < 0 ? 0 : SWAP_FLAG_PREFER | arguments.priority;
  if (swapon(swap.c_str(), flags) != 0) return ErrnoStatus("swapon " + swap);
  const std::string summary = "swaps to " + std::to_string(arguments.files.size) + " bytes of " +
                              std::to_string(arguments.files.donors.size()) + " donors, " + swap;
  spdlog::info("{}", summary);
  manager.Ready(summary);
  for (;;) {
    WaitForStop(signals);
    manager.Stopping("taking pages back");
    if (swapoff(swap.c_str()) == 0) return OkStatus();
    // Pages that have no room here must not be lost.
    spdlog::error("swapoff {}: {}; still serving", swap, std::strerror(errno));
  }
}

Status SwapToLoop(SwapArguments& arguments, int signals, const process::ServiceManager& manager) {
  const std::string& directory = arguments.files.directory;
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoStatus(directory);
  RemoteFiles files;
  if (Status status = files.Start(arguments.files, signals); !status.ok()) return status;
  Status status;
  {
    const std::string path = directory + "/swap";
    auto file = MakeFile(path, arguments.files.size);
    status = file.status();
    if (status.ok()) {
      auto device = LoopDevice::Attach(file.value().get(), path);
      status = device.status();
      if (status.ok()) {
        status = SwapUntilStopped(arguments, device.value().path(), signals, manager);
      }
    }
  }
  files.Stop();
  rmdir(directory.c_str());
  return status;
}

Status SwapToNbd(SwapArguments& arguments, int signals, const process::ServiceManager& manager) {
  auto session = OpenSession(arguments.files, signals);
  if (!session.ok()) return session.status();
  SessionPage page(*session.value());
  Status status = page.Start(arguments.files.metrics);
  if (!status.ok()) return status;
  auto header = SwapHeader(arguments.files.size);
  const int error = session.value()->dispatcher().SubmitAndWait(Direction::kWrite, 0, header.data(),
                                                                header.size());
  if (error != 0) return {-error, std::string("the donors: ") + std::strerror(-error)};
  const std::unique_ptr<Space> space = MakeSpace(*session.value());
  {
    auto device = NbdDevice::Attach(*space, arguments.files.size);
    status = device.status();
    if (status.ok()) {
      status = SwapUntilStopped(arguments, device.value()->path(), signals, manager);
    }
  }
  if (!arguments.files.disk_copy.empty()) unlink(arguments.files.disk_copy.c_str());
  return status;
}

}  // namespace

std::array<uint8_t, kPage> SwapHeader(uint64_t bytes) {
  std::array<uint8_t, kPage> header{};
  const auto put = [&header](size_t offset, uint32_t value) {
    std::memcpy(&header[offset], &value, sizeof value);
  };
  put(1024, 1);                                         // version
  put(1028, static_cast<uint32_t>(bytes / kPage - 1));  // last page
  constexpr char kSignature[] = "SWAPSPACE2";
  std::memcpy(&header[kPage - 10], kSignature, 10);
  return header;
}

int Swap(SwapArguments arguments) {
  process::RaiseDescriptorLimit();
  const process::ServiceManager manager = process::ServiceManager::FromEnvironment();
  auto signals = process::BlockSignals();
  Status status = signals.ok() ? StayInMemory() : signals.status();
  if (status.ok()) {
    const bool nbd = arguments.device == SwapDevice::kNbd ||
                     (arguments.device == SwapDevice::kAuto && NbdDevice::IsThere());
    spdlog::info("swap device: {}", nbd ? "nbd" : "loop, over a mounted file");
    status = nbd ? SwapToNbd(arguments, signals->get(), manager)
                 : SwapToLoop(arguments, signals->get(), manager);
  }
  if (status.ok() || status.error() == ECANCELED) return process::kOk;
  spdlog::error(status.text());
  return status.error() == EINVAL ? process::kUsage : process::kEnvironment;
}

}  // namespace rocegw::far
