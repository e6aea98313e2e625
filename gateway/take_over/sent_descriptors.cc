// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/sent_descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace rocegw::take_over {

OfferedFds SentDescriptors::Missing(const OfferedFds& offered) {
  OfferedFds missing;
  for (const OfferedFd& one : offered) {
    struct statx file {};
    // Eventfds share an inode. Their names are not used twice: a session keeps the same ones, and
    // numbers of sessions are never given again.
    // The program of a closed descriptor is ending.
    // What the kernel has cached suffices: a file system of a program may not answer.
    constexpr int kCached = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
    if (one.fd < 0 || ::statx(one.fd, "", kCached, STATX_INO, &file) != 0) continue;
    const Identity identity{makedev(file.stx_dev_major, file.stx_dev_minor), file.stx_ino};
    const auto [known, fresh] = sent_.try_emplace({one.kind, one.name}, identity);
    if (!fresh && known->second == identity) continue;
    known->second = identity;
    missing.push_back(one);
  }
  return missing;
}

}  // namespace rocegw::take_over
