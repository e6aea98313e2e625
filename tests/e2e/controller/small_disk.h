// SPDX-License-Identifier: Apache-2.0
// File system for a state directory that a test fills.
#pragma once

#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace rocegw::testing {

// A file system of two megabytes.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    mounted_ = mount("rocegw-test", path_.c_str(), "tmpfs", 0, "size=2m,mode=0700") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  void Fill() const {
    std::ofstream filler(path_ + "/filler");
    const std::string block(4096, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void MakeRoom() const { unlink((path_ + "/filler").c_str()); }

 private:
  std::string path_;
  bool mounted_ = false;
};

}  // namespace rocegw::testing
