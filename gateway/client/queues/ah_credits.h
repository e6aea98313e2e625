// SPDX-License-Identifier: Apache-2.0
// How many more address handles this process may make. The handles themselves are the library's
// own, but the pool has a limit for them, so that the gateway counts them: many at a time where it
// has plenty left. Any thread; starts as zeros.
#pragma once

#include <cstdint>

#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

class Session;

class AhCredits {
 public:
  // One more; an errno value when the pool has none left.
  int Take(Session* session);
  void Give(Session* session);
  // After fork, in the child.
  void ResetLock() { lock_.Reset(); }

 private:
  SpinLock lock_;
  uint32_t spare_;
  uint32_t batch_;  // so many were granted the last time
};

}  // namespace rocegw::client
