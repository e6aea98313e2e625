// SPDX-License-Identifier: Apache-2.0
// The lists of counters and drop reasons, and a worker's block of counters.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>

#include "gateway/metrics/drop_reason.h"
#include "gateway/metrics/worker_counters.h"

namespace rocegw::metrics {
namespace {

bool IsLabel(const std::string& text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

TEST(AllCounters, Names_AreUniqueLabelsWithHelp) {
  std::set<std::string> names;
  for (const CounterInfo& info : AllCounters()) {
    EXPECT_TRUE(names.insert(CounterName(info)).second) << info.name;
    EXPECT_TRUE(std::string(info.unit).ends_with("s")) << info.unit;
    EXPECT_TRUE(IsLabel(info.name)) << info.name;
    EXPECT_TRUE(IsLabel(info.unit)) << info.unit;
    EXPECT_FALSE(std::string(info.help).empty()) << info.name;
  }
  EXPECT_GE(names.size(), 30u);
}

TEST(AllCounters, EachGetter_ReadsItsOwnField) {
  auto counters = std::make_unique<WorkerCounters>();
  std::set<const Counter*> fields;
  for (const CounterInfo& info : AllCounters()) {
    EXPECT_TRUE(fields.insert(&info.get(*counters)).second) << info.name;
  }
  counters->rx_packets.Add(3);
  counters->rx_bytes.Add(500);
  for (const CounterInfo& info : AllCounters()) {
    const std::string name = CounterName(info);
    const uint64_t expected = name == "rx_packets" ? 3 : name == "rx_bytes" ? 500 : 0;
    EXPECT_EQ(info.get(*counters).Read(), expected) << name;
  }
}

TEST(CounterName, UnitInTheName_IsNotRepeated) {
  const auto name = [](const char* counter, const char* unit) {
    return CounterName({counter, unit, "", nullptr});
  };
  EXPECT_EQ(name("rx", "bytes"), "rx_bytes");
  EXPECT_EQ(name("control_messages", "messages"), "control_messages");
  EXPECT_EQ(name("cq_event", "events"), "cq_events");
  EXPECT_EQ(name("sleeps", "events"), "sleeps_events");
}

TEST(DropReason, Names_AreUniqueLabelsWithHelp) {
  std::set<std::string> names;
  for (size_t i = 0; i < kDropReasonCount; ++i) {
    const auto reason = static_cast<DropReason>(i);
    EXPECT_TRUE(names.insert(DropReasonName(reason)).second) << i;
    EXPECT_TRUE(IsLabel(DropReasonName(reason))) << i;
    EXPECT_FALSE(std::string(DropReasonHelp(reason)).empty()) << i;
  }
  EXPECT_STREQ(DropReasonName(DropReason::kNone), "none");
  EXPECT_STREQ(DropReasonName(DropReason::k_bad_icrc), "bad_icrc");
}

TEST(DropReason, OutOfRange_IsNamedInvalid) {
  EXPECT_STREQ(DropReasonName(DropReason::kCount), "invalid");
  EXPECT_STREQ(DropReasonName(static_cast<DropReason>(0xFF)), "invalid");
  EXPECT_STREQ(DropReasonHelp(static_cast<DropReason>(0xFF)), "");
}

TEST(WorkerCounters, Drop_CountsTheReasonAndTheTotal) {
  auto counters = std::make_unique<WorkerCounters>();
  counters->Drop(DropReason::k_bad_icrc);
  counters->Drop(DropReason::k_bad_icrc);
  counters->Drop(DropReason::k_truncated);
  EXPECT_EQ(counters->DropCount(DropReason::k_bad_icrc), 2u);
  EXPECT_EQ(counters->DropCount(DropReason::k_truncated), 1u);
  EXPECT_EQ(counters->DropCount(DropReason::k_bad_pad), 0u);
  uint64_t sum = 0;
  for (const Counter& counter : counters->drops) sum += counter.Read();
  EXPECT_EQ(counters->rx_dropped_packets.Read(), sum);
}

TEST(WorkerCounters, Blocks_DoNotShareCacheLines) {
  EXPECT_EQ(alignof(WorkerCounters), 64u);
  EXPECT_EQ(sizeof(WorkerCounters) % 64, 0u);
}

TEST(Counter, ReaderInAnotherThread_SeesItGrow) {
  Counter counter;
  constexpr uint64_t kCount = 100000;
  std::thread writer([&counter] {
    for (uint64_t i = 0; i < kCount; ++i) counter.Add();
  });
  uint64_t last = 0;
  bool monotonic = true;
  while (last < kCount && monotonic) {
    const uint64_t now = counter.Read();
    monotonic = now >= last && now <= kCount;
    last = now;
  }
  writer.join();
  EXPECT_TRUE(monotonic);
  EXPECT_EQ(counter.Read(), kCount);
}

}  // namespace
}  // namespace rocegw::metrics
