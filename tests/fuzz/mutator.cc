// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <cstddef>

namespace rocegw::testing {
namespace {

constexpr size_t kMostAdded = 512;  // by each of at most eight changes

// SplitMix64: quick to seed, since each input has its own.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Returns a number below `limit`, which is not 0.
  size_t Below(size_t limit) { return static_cast<size_t>(Next() % limit); }

 private:
  uint64_t state_;
};

// Writes a number at its limits, of one, two, four or eight bytes, in either byte order.
void WriteLimit(std::vector<uint8_t>& input, Numbers& random) {
  const size_t size = size_t{1} << random.Below(4);
  if (input.size() < size) return;
  const uint64_t limits[] = {0, 1, ~uint64_t{0}, uint64_t{1} << (8 * size - 1), 0x7fffffff, 0xffff};
  const uint64_t value = limits[random.Below(std::size(limits))] - random.Below(2);
  const size_t at = random.Below(input.size() - size + 1);
  const bool big = random.Below(2) != 0;
  for (size_t i = 0; i < size; ++i)
    input[at + i] = static_cast<uint8_t>(value >> (8 * (big ? size - 1 - i : i)));
}

void Change(std::vector<uint8_t>& input, const std::vector<uint8_t>& other, Numbers& random) {
  const size_t kind = random.Below(8);
  if (input.empty() && kind != 5) return;
  switch (kind) {
    case 0:
      input[random.Below(input.size())] ^= static_cast<uint8_t>(1 << random.Below(8));
      break;
    case 1:
      input[random.Below(input.size())] = static_cast<uint8_t>(random.Next());
      break;
    case 2:
    case 3:
      WriteLimit(input, random);
      break;
    case 4:
      input.resize(random.Below(input.size() + 1));
      break;
    case 5: {
      const size_t at = random.Below(input.size() + 1);
      input.insert(input.begin() + static_cast<ptrdiff_t>(at), 1 + random.Below(8),
                   static_cast<uint8_t>(random.Next()));
      break;
    }
    case 6: {  // repeats bytes behind themselves
      const size_t at = random.Below(input.size());
      const size_t size = 1 + random.Below(std::min(input.size() - at, kMostAdded));
      const std::vector<uint8_t> part(input.begin() + static_cast<ptrdiff_t>(at),
                                      input.begin() + static_cast<ptrdiff_t>(at + size));
      input.insert(input.begin() + static_cast<ptrdiff_t>(at), part.begin(), part.end());
      break;
    }
    default: {  // writes bytes of the other entry over those at the same place
      if (other.empty()) return;
      const size_t at = random.Below(std::min(input.size(), other.size()));
      const size_t most = std::min(input.size(), other.size()) - at;
      std::copy_n(other.begin() + static_cast<ptrdiff_t>(at), 1 + random.Below(most),
                  input.begin() + static_cast<ptrdiff_t>(at));
    }
  }
}

}  // namespace

const std::vector<uint8_t>& Mutator::Input(uint64_t seed) {
  Numbers random(seed);
  input_ = corpus_[random.Below(corpus_.size())];
  for (size_t changes = 1 + random.Below(8); changes > 0; --changes)
    Change(input_, corpus_[random.Below(corpus_.size())], random);
  return input_;
}

}  // namespace rocegw::testing
