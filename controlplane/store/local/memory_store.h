// SPDX-License-Identifier: Apache-2.0
// The store in memory, for tests: the whole contract of store.h but durability. Everything happens
// on the caller's thread under one lock, `done` runs before the call returns. A lease ends only
// with its object, or when a test lets it expire.
#pragma once

#include <memory>

#include "controlplane/store/store.h"

namespace rocegw::store {

class MemoryStore : public Store {
 public:
  // As if the store had not heard of this lease for its time to live.
  virtual void ExpireLease(LeaseId id) = 0;
};

std::unique_ptr<MemoryStore> NewMemoryStore();

}  // namespace rocegw::store
