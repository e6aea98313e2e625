// SPDX-License-Identifier: Apache-2.0
// Mask of the modes of files that this process makes, until the end of a scope: a file or socket
// has its mode from the start then. The mask belongs to the process; start-up only.
#pragma once

#include <sys/stat.h>

namespace rocegw {

class ScopedUmask {
 public:
  explicit ScopedUmask(mode_t mask) : before_(umask(mask)) {}
  ~ScopedUmask() { umask(before_); }
  ScopedUmask(const ScopedUmask&) = delete;
  ScopedUmask& operator=(const ScopedUmask&) = delete;

 private:
  mode_t before_;
};

}  // namespace rocegw
