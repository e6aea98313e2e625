// SPDX-License-Identifier: Apache-2.0
// Files of a FUSE file system that answers what open(2) needs and nothing after it: whoever closes
// one waits for the answer to its flush for as long as this process lives. An unprivileged process
// mounts it in a user namespace of its own (fuse(4); linux/fuse.h).
#pragma once

#include <string>
#include <thread>

namespace rocegw::bench {

class UnansweredFiles {
 public:
  // Mounts the file system. Call before the process has another thread. Ends the process with a
  // message when that is not possible.
  UnansweredFiles();
  UnansweredFiles(const UnansweredFiles&) = delete;
  UnansweredFiles& operator=(const UnansweredFiles&) = delete;

  // Returns a descriptor of the file; negative: an error.
  int Open() const;

 private:
  void Serve() const;

  int device_ = -1;
  std::string directory_;
  std::thread server_;
};

}  // namespace rocegw::bench
