// SPDX-License-Identifier: Apache-2.0
// Spoiled copies of a corpus for fuzz targets without libFuzzer: each input comes from a seed of
// its own, so that one number repeats it. One thread.
#pragma once

#include <cstdint>
#include <vector>

namespace rocegw::testing {

class Mutator {
 public:
  // `corpus` is not empty.
  explicit Mutator(std::vector<std::vector<uint8_t>> corpus) : corpus_(std::move(corpus)) {}

  // Returns the input of the seed, valid until the next call: an entry of the corpus after one to
  // eight changes (a bit, a byte, a number at its limits, bytes removed, repeated, inserted or
  // taken from another entry), at most 4 KiB longer than the longest entry.
  const std::vector<uint8_t>& Input(uint64_t seed);

 private:
  const std::vector<std::vector<uint8_t>> corpus_;
  std::vector<uint8_t> input_;
};

}  // namespace rocegw::testing
