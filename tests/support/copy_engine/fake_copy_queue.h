// SPDX-License-Identifier: Apache-2.0
// Copy engine of a test: executes copies late, in any order and in two parts, fails some of them
// after half of their bytes, and has few descriptors. A copy reads its source when it is executed,
// so a source that was used again shows as wrong bytes. Deterministic for a seed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "gateway/memory/copy_engine.h"
#include "tests/support/random.h"

namespace rocegw::testing {

struct FakeCopyOptions {
  uint32_t depth = 64;
  uint64_t seed = 1;
  uint32_t latest = 4;                 // polls that a copy takes at most
  uint32_t fails = 0;                  // percentage of copies that fail
  uint64_t dies_after = ~uint64_t{0};  // copies; later ones are never executed
  bool abandons = true;                // what Abandon returns
  // Called before each half of a copy is executed; `to`: its destination.
  std::function<void(const uint8_t* to, uint32_t length)> on_copy;
};

class FakeCopyQueue final : public memory::CopyQueue {
 public:
  explicit FakeCopyQueue(FakeCopyOptions options = {})
      : options_(std::move(options)), random_(options_.seed) {}

  uint32_t depth() const override { return options_.depth; }
  bool Add(uint8_t* to, const uint8_t* from, uint32_t length, uint32_t cookie) override {
    if (copies_.size() == options_.depth) return false;
    const bool lost = added_ >= options_.dies_after;
    copies_.push_back({to, from, length, cookie, lost ? 0 : random_.Between(1, options_.latest),
                       random_.Below(100) < options_.fails, false});
    most_in_flight_ = std::max(most_in_flight_, copies_.size());
    ++added_;
    return true;
  }
  void Start() override {
    for (Copy& copy : copies_) copy.started = true;
    ++starts_;
  }
  size_t Poll(std::span<Completion> into) override {
    size_t count = 0;
    // From a random position, so that copies end in another order than they began.
    const size_t first = copies_.empty() ? 0 : random_.Below(copies_.size());
    for (size_t n = copies_.size(); n != 0 && count < into.size(); --n) {
      const size_t i = (first + n) % copies_.size();
      Copy& copy = copies_[i];
      if (!copy.started || copy.polls_left == 0 || --copy.polls_left != 0) continue;
      into[count++] = {copy.cookie, Execute(copy)};
      done_.push_back(i);
    }
    RemoveDone();
    return count;
  }

  bool Abandon() override {
    ++abandoned_;
    if (options_.abandons) copies_.clear();
    return options_.abandons;
  }

  uint32_t abandoned() const { return abandoned_; }
  size_t in_flight() const { return copies_.size(); }
  size_t most_in_flight() const { return most_in_flight_; }
  uint64_t added() const { return added_; }
  uint64_t starts() const { return starts_; }

 private:
  struct Copy {
    uint8_t* to;
    const uint8_t* from;
    uint32_t length;
    uint32_t cookie;
    size_t polls_left;  // 0: it is never executed
    bool fails;
    bool started;
  };

  bool Execute(const Copy& copy) {
    const uint32_t half = copy.length / 2;
    if (options_.on_copy) options_.on_copy(copy.to, copy.length);
    // The second half first: no engine promises the order of its bytes.
    std::memcpy(copy.to + half, copy.from + half, copy.length - half);
    if (copy.fails) return false;
    if (options_.on_copy) options_.on_copy(copy.to, copy.length);
    std::memcpy(copy.to, copy.from, half);
    return true;
  }
  void RemoveDone() {
    if (done_.empty()) return;
    std::vector<Copy> left;
    for (size_t i = 0; i < copies_.size(); ++i) {
      if (std::find(done_.begin(), done_.end(), i) == done_.end()) left.push_back(copies_[i]);
    }
    copies_ = std::move(left);
    done_.clear();
  }

  const FakeCopyOptions options_;
  Random random_;
  std::vector<Copy> copies_;
  std::vector<size_t> done_;
  size_t most_in_flight_ = 0;
  uint64_t added_ = 0;
  uint64_t starts_ = 0;
  uint32_t abandoned_ = 0;
};

}  // namespace rocegw::testing
