// SPDX-License-Identifier: Apache-2.0
// Copy engines of DPDK's dmadev with its skeleton driver, whose engine is a thread.
#include "gateway/port/dpdk/dma_copy_engine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <vector>

#include "gateway/memory/copy_measurement.h"
#include "gateway/port/dpdk/dpdk_environment.h"

namespace rocegw::port {
namespace {

class DmaCopyEngineTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Status status = StartDpdk({.huge_pages = false, .memory_mb = 256});
    ASSERT_TRUE(status.ok()) << status.text();
  }
};

TEST_F(DmaCopyEngineTest, NoDevice_IsSaid) {
  const auto none = OpenDmaCopyEngine({}, 1);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().error(), ENODEV);
  const auto unknown = OpenDmaCopyEngine({"wq9.9"}, 1);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().error(), ENODEV);
  EXPECT_NE(unknown.status().text().find("wq9.9"), std::string::npos);
}

TEST_F(DmaCopyEngineTest, Skeleton_CopiesAndReturnsEveryCookieOnce) {
  auto engine = OpenDmaCopyEngine({"dma_skeleton"}, 4);
  ASSERT_TRUE(engine.ok()) << engine.status().text();
  EXPECT_EQ((*engine)->devices(), "dma_skeleton");
  EXPECT_EQ((*engine)->queues(), 1u);
  EXPECT_EQ((*engine)->queue(1), nullptr);
  memory::CopyQueue& queue = *(*engine)->queue(0);
  const uint32_t depth = queue.depth();
  ASSERT_GE(depth, 64u);
  constexpr uint32_t kBytes = 512;
  std::vector<uint8_t> from(size_t{kBytes} * depth);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 31 + i / 7);
  // Several times around the ring of descriptors.
  for (int round = 0; round < 5; ++round) {
    std::vector<uint8_t> to(from.size());
    uint32_t added = 0;
    while (added < depth && queue.Add(&to[size_t{kBytes} * added], &from[size_t{kBytes} * added],
                                      kBytes, depth - 1 - added)) {
      ++added;
    }
    ASSERT_EQ(added, depth);
    EXPECT_FALSE(queue.Add(to.data(), from.data(), kBytes, 0)) << "more than its depth";
    queue.Start();
    std::vector<int> seen(depth);
    std::array<memory::CopyQueue::Completion, 32> done;
    for (uint32_t left = depth; left != 0;) {
      const size_t count = queue.Poll(done);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(done[i].copied);
        ++seen.at(done[i].cookie);
      }
      left -= static_cast<uint32_t>(count);
      if (count == 0) ::sched_yield();
    }
    EXPECT_EQ(seen, std::vector<int>(depth, 1));
    EXPECT_EQ(to, from);
  }
}

TEST_F(DmaCopyEngineTest, Skeleton_OpensAgainAndIsMeasured) {
  for (int i = 0; i < 2; ++i) {
    auto engine = OpenDmaCopyEngine({"dma_skeleton"}, 1);
    ASSERT_TRUE(engine.ok()) << engine.status().text();
    const auto times = memory::MeasureCopies(*(*engine)->queue(0));
    ASSERT_EQ(times.size(), std::size(memory::kMeasuredBytes));
    for (const memory::CopyTimes& time : times) {
      EXPECT_GT(time.by_processor.ns, 0);
      EXPECT_GT(time.by_engine.ns, 0);
      EXPECT_LT(time.by_engine, Seconds(1)) << time.bytes;
    }
  }
}

// The last test with this device: DPDK does not give it out again to the same process.
TEST_F(DmaCopyEngineTest, Skeleton_AbandonedWithCopiesInFlight_UsesNothingAnyMore) {
  std::vector<uint8_t> from(1 << 20);
  std::vector<uint8_t> to(from.size());
  {
    auto engine = OpenDmaCopyEngine({"dma_skeleton"}, 1);
    ASSERT_TRUE(engine.ok()) << engine.status().text();
    memory::CopyQueue& queue = *(*engine)->queue(0);
    for (uint32_t i = 0; i < queue.depth(); ++i)
      ASSERT_TRUE(queue.Add(to.data(), from.data(), static_cast<uint32_t>(to.size()), i));
    queue.Start();
    EXPECT_TRUE(queue.Abandon());
  }
  std::ranges::fill(to, uint8_t{7});
  std::ranges::fill(from, uint8_t{9});
  for (int i = 0; i < 1000; ++i) ::sched_yield();
  EXPECT_EQ(std::ranges::count(to, uint8_t{7}), static_cast<std::ptrdiff_t>(to.size()));
}

}  // namespace
}  // namespace rocegw::port
