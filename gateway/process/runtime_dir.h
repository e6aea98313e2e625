// SPDX-License-Identifier: Apache-2.0
// Directory that one daemon at a time uses: created if missing, locked by flock(2) on its file
// "lock", which names the holder. Main thread, start-up only.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"

namespace rocegw::process {

class RuntimeDir {
 public:
  // `key`: its name in the configuration; `program`: name of the holder, for display.
  RuntimeDir(std::string key, std::string program, mode_t mode = 0755)
      : key_(std::move(key)), program_(std::move(program)), mode_(mode) {}
  RuntimeDir(const RuntimeDir&) = delete;
  RuntimeDir& operator=(const RuntimeDir&) = delete;
  ~RuntimeDir() { Release(); }

  Status Claim(const std::string& path);
  // Takes the lock that another process holds and shares with this one. The file names that process
  // until NameHolder.
  Status Inherit(const std::string& path, UniqueFd lock);
  // Writes this process into the lock file, for display.
  Status NameHolder();
  // Adds the lock to what another process may share.
  void Offer(OfferedFds& fds) const;
  void Release();

 private:
  const std::string key_;
  const std::string program_;
  const mode_t mode_;  // mode of a created directory
  std::string path_;
  int fd_ = -1;
};

// Owner of a file; -1: not named. Texts are "USER", "USER:GROUP" or ":GROUP", names or numbers; ""
// names neither.
struct Owner {
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
};
StatusOr<Owner> FindOwner(const std::string& owner);

}  // namespace rocegw::process
