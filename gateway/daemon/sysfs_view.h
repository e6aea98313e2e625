// SPDX-License-Identifier: Apache-2.0
// A directory tree with the shape of /sys/class/infiniband for the gateway's devices. Programs look
// there for GID types, netdevs and states; the client library points them to it. Readable by
// everyone, written by the daemon only; files are replaced, so that a reader sees the old content
// or the new. Control thread.
#pragma once

#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/session/options.h"

namespace rocegw::daemon {

class SysfsView {
 public:
  // The tree is rebuilt below `root`, which is removed at the end.
  explicit SysfsView(std::string root) : root_(std::move(root)) {}
  SysfsView(const SysfsView&) = delete;
  SysfsView& operator=(const SysfsView&) = delete;
  ~SysfsView() { Remove(); }

  const std::string& root() const { return root_; }
  Status Create(const std::vector<session::Device>& devices, const std::string& version);
  // Writes what may change while the gateway runs.
  Status Update(const session::Device& device);
  void Remove();

 private:
  std::string root_;
};

}  // namespace rocegw::daemon
