// SPDX-License-Identifier: Apache-2.0
// Rate limits by source address without a table of sources: token buckets selected by a keyed hash.
// Sources in one bucket share its limit; the key prevents a stranger from choosing the bucket of
// another source. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/base/secret_sequence.h"
#include "gateway/base/timing/token_bucket.h"

namespace rocegw {

class SourceLimits {
 public:
  // Each source has `rate` events per second, and `burst` at once.
  SourceLimits(const SecretKey& key, uint32_t rate, uint32_t burst)
      : key_(key), buckets_(kBuckets, TokenBucket(rate, burst)) {}

  // Returns true if the event is within the limit. `source`: the bytes of its address.
  bool Take(std::span<const uint8_t> source, TimePoint now) {
    return buckets_[SipHash(key_, source) % kBuckets].Take(now);
  }

 private:
  static constexpr size_t kBuckets = 1024;
  SecretKey key_;
  std::vector<TokenBucket> buckets_;
};

}  // namespace rocegw
