// SPDX-License-Identifier: Apache-2.0
#include "gateway/metrics/duration_histogram.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace rocegw::metrics {
namespace {

TEST(DurationHistogram, EachInTheSmallestBucketThatHoldsIt) {
  DurationHistogram times;
  times.Add(Microseconds(1));
  times.Add(Nanoseconds(1001));
  times.Add(Milliseconds(500));
  times.Add(Seconds(1));
  EXPECT_EQ(times.counts().front(), 1u);
  EXPECT_EQ(times.counts()[1], 1u);
  EXPECT_EQ(times.counts().back(), 1u);
  EXPECT_EQ(times.count(), 4u) << "too long for any bucket, and counted";
  EXPECT_EQ(times.sum_ns(), 1'500'002'001);
}

TEST(SharedDurationHistogram, HasWhatSeveralThreadsAdded_NeverMoreInBucketsThanInAll) {
  SharedDurationHistogram shared;
  DurationHistogram some;
  some.Add(Microseconds(3));
  some.Add(Milliseconds(3));
  constexpr int kRounds = 20000;
  const auto add = [&] {
    for (int i = 0; i < kRounds; ++i) shared.Add(some);
  };
  std::thread one(add);
  std::thread other(add);
  uint64_t count = 0;
  while (count < uint64_t{4} * kRounds) {
    const DurationHistogram seen = shared.Read();
    const uint64_t in_buckets =
        std::accumulate(seen.counts().begin(), seen.counts().end(), uint64_t{0});
    ASSERT_LE(in_buckets, seen.count());
    ASSERT_GE(seen.count(), count);
    count = seen.count();
  }
  one.join();
  other.join();
  const DurationHistogram all = shared.Read();
  EXPECT_EQ(all.counts()[2], uint64_t{2} * kRounds);
  EXPECT_EQ(all.counts()[11], uint64_t{2} * kRounds);
  EXPECT_EQ(all.sum_ns(), int64_t{2} * kRounds * 3'003'000);
}

}  // namespace
}  // namespace rocegw::metrics
