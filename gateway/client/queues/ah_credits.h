// SPDX-License-Identifier: Apache-2.0
// Number of address handles that this process may still create. The handles exist only in the
// library, but the pool has a limit for them, so the gateway grants them: many at a time while it
// has plenty. Any thread; zero-initialised.
#pragma once

#include <cstdint>

#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

class Session;

class AhCredits {
 public:
  // Takes one; returns an errno value if the pool has none left.
  int Take(Session* session);
  void Give(Session* session);
  // Call in the child after fork.
  void ResetLock() { lock_.Reset(); }

 private:
  SpinLock lock_;
  uint32_t spare_;
  uint32_t batch_;  // size of the last grant
};

}  // namespace rocegw::client
