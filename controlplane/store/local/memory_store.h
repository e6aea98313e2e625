// SPDX-License-Identifier: Apache-2.0
// Store in memory, for tests: the whole contract of store.h except durability. Everything happens
// on the caller's thread under one lock; `done` runs before the call returns. A lease ends only
// with its object, or when a test expires it.
#pragma once

#include <memory>

#include "controlplane/store/store.h"

namespace rocegw::store {

class MemoryStore : public Store {
 public:
  // Expires a lease, as if it was not renewed in time.
  virtual void ExpireLease(LeaseId id) = 0;
};

std::unique_ptr<MemoryStore> NewMemoryStore();

}  // namespace rocegw::store
