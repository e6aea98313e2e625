// SPDX-License-Identifier: Apache-2.0
// The choice of the copies that an engine makes, from measured times and of engines that fail or
// never answer.
#include "gateway/memory/copy_measurement.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/copy_engine/fake_copy_queue.h"

namespace rocegw::memory {
namespace {

using testing::FakeCopyQueue;

CopyTimes Times(uint32_t bytes, int64_t processor, int64_t engine) {
  return {bytes, Duration{processor}, Duration{engine}};
}

TEST(CopyMeasurement, Choice_IsTheLengthFromWhichTheEngineStaysFaster) {
  const std::vector<CopyTimes> late = {Times(512, 20, 90), Times(1024, 60, 95),
                                       Times(2048, 130, 100), Times(4096, 270, 140)};
  EXPECT_EQ(ShortestWorthwhile(late), 2048u);
  // A single length with an exceptional time does not count.
  const std::vector<CopyTimes> mixed = {Times(512, 99, 90), Times(1024, 60, 95),
                                        Times(2048, 90, 100), Times(4096, 270, 140)};
  EXPECT_EQ(ShortestWorthwhile(mixed), 4096u);
  const std::vector<CopyTimes> never = {Times(512, 20, 10), Times(4096, 140, 140)};
  EXPECT_EQ(ShortestWorthwhile(never), 0u);
  EXPECT_EQ(ShortestWorthwhile({}), 0u);
}

TEST(CopyMeasurement, EngineThatFails_IsNeverWorthwhile) {
  FakeCopyQueue failing({.fails = 100});
  const std::vector<CopyTimes> times = MeasureCopies(failing);
  for (const CopyTimes& time : times) EXPECT_EQ(time.by_engine, kCopyLost);
  EXPECT_EQ(ShortestWorthwhile(times), 0u);
  EXPECT_EQ(failing.in_flight(), 0u);
}

TEST(CopyMeasurement, EngineThatFailsSometimes_IsNeverWorthwhile) {
  FakeCopyQueue failing({.fails = 1});
  for (const CopyTimes& time : MeasureCopies(failing)) EXPECT_EQ(time.by_engine, kCopyLost);
}

// Reports success at once and copies nothing.
class IdleQueue final : public CopyQueue {
 public:
  uint32_t depth() const override { return 64; }
  bool Add(uint8_t*, const uint8_t*, uint32_t, uint32_t cookie) override {
    cookies_.push_back(cookie);
    return true;
  }
  void Start() override {}
  size_t Poll(std::span<Completion> into) override {
    size_t count = 0;
    for (; count < into.size() && !cookies_.empty(); ++count) {
      into[count] = {cookies_.back(), true};
      cookies_.pop_back();
    }
    return count;
  }
  bool Abandon() override { return true; }

 private:
  std::vector<uint32_t> cookies_;
};

TEST(CopyMeasurement, EngineThatCopiesNothing_IsNeverWorthwhile) {
  IdleQueue idle;
  for (const CopyTimes& time : MeasureCopies(idle)) EXPECT_EQ(time.by_engine, kCopyLost);
}

class DeadQueue final : public CopyQueue {
 public:
  uint32_t depth() const override { return 8; }
  bool Add(uint8_t*, const uint8_t*, uint32_t, uint32_t) override { return true; }
  void Start() override {}
  size_t Poll(std::span<Completion>) override { return 0; }
  bool Abandon() override { return false; }
};

TEST(CopyMeasurement, EngineThatNeverAnswers_CostsASecondOnce) {
  DeadQueue dead;
  const std::vector<CopyTimes> times = MeasureCopies(dead);
  EXPECT_EQ(ShortestWorthwhile(times), 0u);
  for (const CopyTimes& time : times) EXPECT_EQ(time.by_engine, kCopyLost);
}

TEST(CopyMeasurement, FewDescriptors_AreEnough) {
  FakeCopyQueue small({.depth = 2, .latest = 1});
  const std::vector<CopyTimes> times = MeasureCopies(small);
  for (const CopyTimes& time : times) EXPECT_LT(time.by_engine, kCopyLost);
  EXPECT_EQ(small.most_in_flight(), 2u);
}

}  // namespace
}  // namespace rocegw::memory
