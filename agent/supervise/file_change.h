// SPDX-License-Identifier: Apache-2.0
// Calls when a file has been written, replaced or put into place: its folder is watched, as editors
// and package managers put a new file where the old one was. Several changes in quick succession
// are one. Lives on the loop, which outlives it.
#pragma once

#include <functional>
#include <string>

#include "gateway/base/unique_fd.h"
#include "gateway/session/control_loop.h"

namespace rocegw::agent {

class FileChange {
 public:
  // An empty path: never. A folder that cannot be watched is said in the log.
  FileChange(session::ControlLoop& loop, const std::string& path, std::function<void()> changed);
  ~FileChange();
  FileChange(const FileChange&) = delete;
  FileChange& operator=(const FileChange&) = delete;

 private:
  void OnEvents();

  session::ControlLoop& loop_;
  const std::function<void()> changed_;
  std::string name_;  // within the folder
  UniqueFd notify_;
  session::ControlLoop::WatchId watch_ = 0;
  session::ControlLoop::TimerId settle_ = 0;
};

}  // namespace rocegw::agent
