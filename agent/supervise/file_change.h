// SPDX-License-Identifier: Apache-2.0
// Notification when a file was written, replaced or moved into place: watches its directory, since
// editors and package managers replace files. Several changes in quick succession count as one.
// Lives on the loop, which outlives it.
#pragma once

#include <functional>
#include <string>

#include "gateway/base/unique_fd.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

class FileChange {
 public:
  // An empty path: never notifies. A directory that cannot be watched is reported in the log.
  FileChange(ControlLoop& loop, const std::string& path, std::function<void()> changed);
  ~FileChange();
  FileChange(const FileChange&) = delete;
  FileChange& operator=(const FileChange&) = delete;

 private:
  void OnEvents();

  ControlLoop& loop_;
  const std::function<void()> changed_;
  std::string name_;  // name within the directory
  UniqueFd notify_;
  ControlLoop::WatchId watch_ = 0;
  ControlLoop::TimerId settle_ = 0;
};

}  // namespace rocegw::agent
