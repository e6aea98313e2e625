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
  // The same, of a file whose close is answered at once.
  int OpenAnswered() const;
  // Writes into that file what the file system never takes. From then on the release of its last
  // descriptors waits, also where the kernel drops a message that carries one (write-back cache,
  // fuse_release).
  void WriteAnswered() const;

 private:
  int OpenNamed(const char* name) const;
  void Serve() const;

  int device_ = -1;
  std::string directory_;
  std::thread server_;
};

}  // namespace rocegw::bench
