// SPDX-License-Identifier: Apache-2.0
// The directory of sockets and run-time files: made when missing, held by one daemon at a time
// (flock(2) on its file "lock", which names the holder). Main thread, start-up only.
#pragma once

#include <sys/types.h>

#include <string>

#include "gateway/base/status.h"

namespace rocegw::daemon {

class RuntimeDir {
 public:
  RuntimeDir() = default;
  RuntimeDir(const RuntimeDir&) = delete;
  RuntimeDir& operator=(const RuntimeDir&) = delete;
  ~RuntimeDir() { Release(); }

  Status Claim(const std::string& path);
  void Release();

 private:
  int fd_ = -1;
};

// -1 each: not named. owner is "USER", "USER:GROUP" or ":GROUP", names or numbers; "" names
// neither.
struct Owner {
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
};
StatusOr<Owner> FindOwner(const std::string& owner);

}  // namespace rocegw::daemon
