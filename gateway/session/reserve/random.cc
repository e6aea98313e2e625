// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/reserve/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace rocegw::session {

uint32_t Random::Next() {
  if (left_ == 0) {
    // Requests of up to 256 bytes are never truncated once the generator is seeded (getrandom(2)).
    static_assert(sizeof batch_ <= 256);
    ssize_t got = 0;
    do {
      got = ::getrandom(batch_.data(), sizeof batch_, 0);
    } while (got < 0 && errno == EINTR);
    // Without unpredictable keys the gateway must not run.
    if (got != static_cast<ssize_t>(sizeof batch_)) std::abort();
    left_ = batch_.size();
  }
  const uint32_t value = batch_[--left_];
  batch_[left_] = 0;
  return value;
}

}  // namespace rocegw::session
