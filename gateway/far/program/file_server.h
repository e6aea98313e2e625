// SPDX-License-Identifier: Apache-2.0
// File system in remote memory as the kernel's FUSE asks for it: answers requests from the tree and
// from the data of files. One lock guards the tree; it is taken before the lock of the data, and is
// never held while data is transferred. Any thread.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <memory>
#include <mutex>

#include "gateway/base/status.h"
#include "gateway/far/files/file_data.h"
#include "gateway/far/files/kept/keeper.h"
#include "gateway/far/files/tree.h"

namespace rocegw::far {

class FileServer {
 public:
  struct Names {
    uint64_t used = 0, most = 0;
  };

  struct Limits {
    uint64_t size = 0;            // bytes for the files' data
    uint64_t most_in_flight = 0;  // bytes of requests that wait for the space
    uint64_t most_names = 0;
    // The kernel gathers writes in its page cache and writes them later; fsync(2) waits for them.
    bool write_back = false;
  };

  FileServer(Space& space, const Limits& limits);

  // The operations, for fuse_session_new; its user data is the server.
  static const fuse_lowlevel_ops& Operations();

  // Keeps the files in a journal, and begins with those of `kept`, which that journal has. Before
  // the first operation. EINVAL: they are no tree of files.
  Status Keep(std::unique_ptr<Journal> journal, KeptFiles kept);
  // Keeps what there is, for the last time. No operation is under way.
  void StopKeeping() { keeper_.reset(); }

  FileData& data() { return data_; }
  Names GetNames();

 private:
  friend struct FuseCalls;

  bool Attributes(fuse_ino_t number, struct stat* out);
  void FillAttributes(const Inode& inode, struct stat* out);
  FileData::FilePointer FileOf(fuse_ino_t number);
  void ReplyEntry(fuse_req_t request, int error, Inode* inode, fuse_file_info* created);
  void Make(fuse_req_t request, fuse_ino_t parent, const char* name, NewNode node,
            fuse_file_info* created);
  int SetAttributes(fuse_ino_t number, const struct stat& wanted, int which);
  std::string Record(bool everything);
  int FlushData();

  const bool write_back_;
  std::mutex mutex_;
  FileData data_;
  Tree tree_;
  std::unique_ptr<Keeper> keeper_;  // nullptr: the files end with this object
};

}  // namespace rocegw::far
