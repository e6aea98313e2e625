// SPDX-License-Identifier: Apache-2.0
// Amount of a resource that was taken from a pool. The destructor returns it. Movable. The pool
// outlives the charge. Control thread.
#pragma once

#include <cstdint>
#include <utility>

#include "gateway/tenant/registry.h"

namespace rocegw::tenant {

class Charge {
 public:
  Charge() = default;
  // `amount` was granted by Pool::Take.
  Charge(Pool& pool, Resource resource, uint64_t amount)
      : pool_(&pool), resource_(resource), amount_(amount) {}
  Charge(Charge&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        resource_(other.resource_),
        amount_(std::exchange(other.amount_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    if (this != &other) {
      Reset();
      pool_ = std::exchange(other.pool_, nullptr);
      resource_ = other.resource_;
      amount_ = std::exchange(other.amount_, 0);
    }
    return *this;
  }
  ~Charge() { Reset(); }

  uint64_t amount() const { return amount_; }
  void Reset() {
    if (pool_ != nullptr) std::exchange(pool_, nullptr)->Give(resource_, amount_);
    amount_ = 0;
  }

 private:
  Pool* pool_ = nullptr;
  Resource resource_ = Resource::kHeapBytes;
  uint64_t amount_ = 0;
};

}  // namespace rocegw::tenant
