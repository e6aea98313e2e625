// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/copy_measurement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gateway/base/timing/monotonic_clock.h"

namespace rocegw::memory {
namespace {

constexpr uint32_t kBurst = 32;
constexpr int kRounds = 16;
constexpr size_t kMostBytes = 4096;
// Longer than the private caches of a core: neither packets nor the program's memory are there.
constexpr size_t kAreas = 16;
constexpr size_t kBytes = kAreas * kBurst * kMostBytes;

// Keeps memory that an engine may still use, to the end of the process.
void KeepForGood(std::unique_ptr<uint8_t[]> memory) {
  static auto* const kept = new std::vector<std::unique_ptr<uint8_t[]>>;
  kept->push_back(std::move(memory));
}

class Bench {
 public:
  explicit Bench(CopyQueue& queue)
      : queue_(queue), from_(new uint8_t[kBytes]), to_(new uint8_t[kBytes]) {
    std::memset(from_.get(), 1, kBytes);
    std::memset(to_.get(), 2, kBytes);
  }
  ~Bench() {
    if (!lost_) return;
    KeepForGood(std::move(from_));
    KeepForGood(std::move(to_));
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  CopyTimes Measure(uint32_t bytes) {
    CopyTimes times{bytes, kCopyLost, kCopyLost};
    for (int round = 0; round < kRounds; ++round) {
      times.by_processor = std::min(times.by_processor, ByProcessor(bytes));
      times.by_engine = std::min(times.by_engine, ByEngine(bytes));
    }
    Verify(bytes);
    return times;
  }
  // Returns true if a copy failed, was lost or went elsewhere: the queue is of no use then.
  bool failed() const { return failed_; }

 private:
  size_t NextArea() { return area_ = (area_ + 1) % kAreas; }

  Duration ByProcessor(uint32_t bytes) {
    const size_t at = NextArea() * kBurst * kMostBytes;
    const TimePoint begun = MonotonicNow();
    for (size_t i = 0; i < kBurst; ++i)
      std::memcpy(&to_[at + i * kMostBytes], &from_[at + i * kMostBytes], bytes);
    return {(MonotonicNow() - begun).ns / kBurst};
  }

  // Copies other bytes than those of the timed rounds, and looks at the result.
  void Verify(uint32_t bytes) {
    area_ = 0;
    std::memset(&from_[NextArea() * kBurst * kMostBytes], static_cast<int>(bytes >> 9 | 0x80),
                kBurst * kMostBytes);
    area_ = 0;
    if (ByEngine(bytes) == kCopyLost) return;
    const size_t at = area_ * kBurst * kMostBytes;
    const auto count = std::min<uint32_t>(kBurst, queue_.depth());
    for (size_t i = 0; i < count; ++i) {
      const size_t copy = at + i * kMostBytes;
      failed_ = failed_ || std::memcmp(&to_[copy], &from_[copy], bytes) != 0;
    }
  }

  Duration ByEngine(uint32_t bytes) {
    if (lost_) return kCopyLost;
    const size_t at = NextArea() * kBurst * kMostBytes;
    const auto count = std::min<uint32_t>(kBurst, queue_.depth());
    const TimePoint begun = MonotonicNow();
    uint32_t added = 0;
    while (added < count &&
           queue_.Add(&to_[at + added * kMostBytes], &from_[at + added * kMostBytes], bytes, added))
      ++added;
    queue_.Start();
    bool copied = added != 0;
    std::array<CopyQueue::Completion, kBurst> done;
    for (uint32_t left = added; left != 0;) {
      const size_t completed = queue_.Poll(done);
      for (size_t i = 0; i < completed; ++i) copied = copied && done[i].copied;
      left -= static_cast<uint32_t>(completed);
      if (completed == 0 && MonotonicNow() - begun > kCopyLost) {
        lost_ = failed_ = true;
        return kCopyLost;
      }
    }
    failed_ = failed_ || !copied;
    return copied ? Duration{(MonotonicNow() - begun).ns / added} : kCopyLost;
  }

  CopyQueue& queue_;
  std::unique_ptr<uint8_t[]> from_;
  std::unique_ptr<uint8_t[]> to_;
  size_t area_ = 0;
  bool lost_ = false;
  bool failed_ = false;
};

}  // namespace

std::vector<CopyTimes> MeasureCopies(CopyQueue& queue) {
  Bench bench(queue);
  std::vector<CopyTimes> times;
  for (const uint32_t bytes : kMeasuredBytes) times.push_back(bench.Measure(bytes));
  if (bench.failed())
    for (CopyTimes& one : times) one.by_engine = kCopyLost;
  return times;
}

uint32_t ShortestWorthwhile(std::span<const CopyTimes> times) {
  uint32_t shortest = 0;
  for (size_t i = times.size(); i != 0 && times[i - 1].by_engine < times[i - 1].by_processor; --i)
    shortest = times[i - 1].bytes;
  return shortest;
}

}  // namespace rocegw::memory
