// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/sent_descriptors.h"

namespace rocegw::take_over {

OfferedFds SentDescriptors::Missing(const OfferedFds& offered) {
  OfferedFds missing;
  for (const OfferedFd& one : offered) {
    struct stat file {};
    // Eventfds share an inode. Their names are not used twice: a session keeps the same ones, and
    // numbers of sessions are never given again.
    // The program of a closed descriptor is ending.
    if (one.fd < 0 || ::fstat(one.fd, &file) != 0) continue;
    const Identity identity{file.st_dev, file.st_ino};
    const auto [known, fresh] = sent_.try_emplace({one.kind, one.name}, identity);
    if (!fresh && known->second == identity) continue;
    known->second = identity;
    missing.push_back(one);
  }
  return missing;
}

}  // namespace rocegw::take_over
