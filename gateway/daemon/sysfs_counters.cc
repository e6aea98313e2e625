// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/sysfs_counters.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace rocegw::daemon {
namespace {

using datapath::PortTraffic;

constexpr Duration kInUse = Milliseconds(100);
constexpr Duration kAtRest = Seconds(1);

struct Counter {
  const char* path;  // below ports/1
  uint64_t PortTraffic::*value;
  uint64_t unit;
};

constexpr Counter kCounters[] = {
    {"counters/port_xmit_data", &PortTraffic::tx_bytes, 4},  // the unit is 32-bit words
    {"counters/port_rcv_data", &PortTraffic::rx_bytes, 4},
    {"counters/port_xmit_packets", &PortTraffic::tx_packets, 1},
    {"counters/port_rcv_packets", &PortTraffic::rx_packets, 1},
    {"counters/port_xmit_discards", &PortTraffic::tx_lost, 1},
    {"counters/excessive_buffer_overrun_errors", &PortTraffic::rx_overflow, 1},
    {"hw_counters/sent_pkts", &PortTraffic::tx_packets, 1},
    {"hw_counters/rcvd_pkts", &PortTraffic::rx_packets, 1},
    {"hw_counters/tx_bytes", &PortTraffic::tx_bytes, 1},
    {"hw_counters/rx_bytes", &PortTraffic::rx_bytes, 1},
};

// A number never gets shorter, so nothing of an older one remains behind it.
void WriteNumber(int fd, uint64_t number) {
  const std::string text = std::to_string(number) + "\n";
  (void)!::pwrite(fd, text.data(), text.size(), 0);
}

}  // namespace

SysfsCounters::SysfsCounters(ControlLoop& loop, std::string root, Source source,
                             std::function<bool()> in_use)
    : loop_(loop), root_(std::move(root)), source_(std::move(source)), in_use_(std::move(in_use)) {}

Status SysfsCounters::Start(const std::vector<std::string>& devices) {
  Stop();
  for (const std::string& device : devices) {
    const std::string port = root_ + "/class/infiniband/" + device + "/ports/1/";
    if (Status status = Open(devices_++, port); !status.ok()) {
      Stop();
      return status;
    }
  }
  Tick();
  return OkStatus();
}

Status SysfsCounters::Open(size_t device, const std::string& port) {
  std::error_code error;
  for (const char* const folder : {"counters", "hw_counters"})
    std::filesystem::create_directories(port + folder, error);
  for (const Counter& counter : kCounters) {
    const std::string path = port + counter.path;
    File& file = files_.emplace_back();
    file.device = device;
    file.value = counter.value;
    file.unit = counter.unit;
    file.fd.Reset(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!file.fd.valid()) return {errno, path + ": " + std::strerror(errno)};
    WriteNumber(file.fd.get(), 0);
  }
  return OkStatus();
}

void SysfsCounters::Stop() {
  loop_.Cancel(std::exchange(timer_, 0));
  files_.clear();
  devices_ = 0;
}

void SysfsCounters::WriteChanged() {
  std::vector<PortTraffic> traffic;
  for (size_t device = 0; device < devices_; ++device) traffic.push_back(source_(device));
  for (File& file : files_) {
    const uint64_t now = traffic[file.device].*file.value / file.unit;
    if (now == file.written) continue;
    WriteNumber(file.fd.get(), now);
    file.written = now;
  }
}

void SysfsCounters::Tick() {
  WriteChanged();
  const Duration wait = in_use_() ? kInUse : kAtRest;
  timer_ = loop_.At(ControlLoop::Now() + wait, [this] { Tick(); });
}

}  // namespace rocegw::daemon
