// SPDX-License-Identifier: Apache-2.0
// Token buckets by source: bounds how often something is done for one source without a table of
// sources. Sources that share a bucket share its limit; the key of the hash keeps a stranger from
// choosing whom it shares one with. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/base/secret_sequence.h"
#include "gateway/base/token_bucket.h"

namespace rocegw {

class SourceLimits {
 public:
  // `rate` per second and `burst` at once of each source.
  SourceLimits(const SecretKey& key, uint32_t rate, uint32_t burst)
      : key_(key), buckets_(kBuckets, TokenBucket(rate, burst)) {}

  // `source`: the bytes of its address.
  bool Take(std::span<const uint8_t> source, TimePoint now) {
    return buckets_[SipHash(key_, source) % kBuckets].Take(now);
  }

 private:
  static constexpr size_t kBuckets = 1024;
  SecretKey key_;
  std::vector<TokenBucket> buckets_;
};

}  // namespace rocegw
