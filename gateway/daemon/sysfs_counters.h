// SPDX-License-Identifier: Apache-2.0
// Counter files in the sysfs view: what each device sent and received, in the names and units of
// Linux (Documentation/ABI/stable/sysfs-class-infiniband). A value is of the device and all its
// programs, as on a kernel device; the interface's own statistics tell as much. Files are rewritten
// in place, so that a program may keep one open: each second, and ten times a second while programs
// are attached. Control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/datapath/ports.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::daemon {

class SysfsCounters {
 public:
  using Source = std::function<datapath::PortTraffic(size_t device)>;

  // Files are below `root` (SysfsView). `source` and `in_use` (programs are attached) are asked
  // until Stop.
  SysfsCounters(ControlLoop& loop, std::string root, Source source, std::function<bool()> in_use);
  ~SysfsCounters() { Stop(); }
  SysfsCounters(const SysfsCounters&) = delete;
  SysfsCounters& operator=(const SysfsCounters&) = delete;

  // Makes or takes over the files of these devices, by index.
  Status Start(const std::vector<std::string>& devices);
  void Stop();

 private:
  struct File {
    size_t device = 0;
    uint64_t datapath::PortTraffic::*value = nullptr;
    uint64_t unit = 1;  // bytes or packets that count as one
    UniqueFd fd;
    uint64_t written = 0;
  };

  Status Open(size_t device, const std::string& port);
  void WriteChanged();
  void Tick();

  ControlLoop& loop_;
  const std::string root_;
  const Source source_;
  const std::function<bool()> in_use_;
  std::vector<File> files_;
  size_t devices_ = 0;
  ControlLoop::TimerId timer_ = 0;
};

}  // namespace rocegw::daemon
