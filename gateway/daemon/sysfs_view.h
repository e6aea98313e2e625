// SPDX-License-Identifier: Apache-2.0
// Directory tree in the layout of /sys/class/infiniband for the gateway's devices. Programs look
// there for GID types, netdevs and states; the client library directs them to it. Readable by all,
// written by the daemon only. Files are replaced, so a reader sees old or new content. Control
// thread.
#pragma once

#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/session/options.h"

namespace rocegw::daemon {

class SysfsView {
 public:
  // Builds the tree below `root`, which the destructor removes.
  explicit SysfsView(std::string root) : root_(std::move(root)) {}
  SysfsView(const SysfsView&) = delete;
  SysfsView& operator=(const SysfsView&) = delete;
  ~SysfsView() { Remove(); }

  const std::string& root() const { return root_; }
  Status Create(const std::vector<session::Device>& devices, const std::string& version);
  // The same over the tree of another process, which programs may be reading.
  Status Renew(const std::vector<session::Device>& devices, const std::string& version);
  // Writes the values that may change while the gateway runs.
  Status Update(const session::Device& device);
  void Remove();

 private:
  std::string root_;
};

}  // namespace rocegw::daemon
