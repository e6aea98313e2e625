// SPDX-License-Identifier: Apache-2.0
// Limits of the programs at one attach socket together, below the quota of their pool: a share of
// the pool that its agent gives with the verdict, such as the amounts of a Kubernetes claim. The
// control thread counts queue pairs; workers charge bytes. Its pool outlives it, and it outlives
// the sessions of its socket at the workers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "gateway/base/invariant.h"
#include "gateway/tenant/share.h"

namespace rocegw::tenant {

// 0: no limit besides the pool's.
struct SlotLimits {
  uint64_t qps = 0;
  uint64_t bytes_per_second = 0;

  bool any() const { return qps != 0 || bytes_per_second != 0; }
  bool operator==(const SlotLimits&) const = default;
};

class SlotShare {
 public:
  // `limits` has any. `path`: of the attach socket.
  SlotShare(Share& pool, const SlotLimits& limits, std::string path)
      : bytes(&pool.bytes, Share::kDataBurst),
        pool_(pool),
        limits_(limits),
        path_(std::move(path)) {
    bytes.SetRates(0, limits.bytes_per_second == 0 ? kUnlimited : limits.bytes_per_second);
  }

  const Share& pool() const { return pool_; }
  const SlotLimits& limits() const { return limits_; }
  const std::string& path() const { return path_; }
  uint64_t MostQps() const { return limits_.qps == 0 ? kUnlimited : limits_.qps; }

  // Takes queue pairs. Returns false, and takes none, if the limit is reached.
  [[nodiscard]] bool TakeQps(uint64_t amount) {
    if (amount > MostQps() - std::min(qps_, MostQps())) return false;
    qps_ += amount;
    return true;
  }
  void GiveQps(uint64_t amount) {
    if (ROCEGW_INVARIANT(amount <= qps_, "slot-given-back-more-than-taken")) qps_ -= amount;
  }

  RateNode bytes;

 private:
  const Share& pool_;
  const SlotLimits limits_;
  const std::string path_;
  uint64_t qps_ = 0;
};

}  // namespace rocegw::tenant
