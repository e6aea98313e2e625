// SPDX-License-Identifier: Apache-2.0
// Keys, queue pair numbers, and the rate of log lines.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>
#include <vector>

#include "gateway/session/reserve/key_generator.h"
#include "gateway/session/reserve/qpn_allocator.h"
#include "gateway/session/state/log_limiter.h"

namespace rocegw::session {
namespace {

constexpr TimePoint kStart{1000000000};

TEST(QpnPermutation, Apply_IsAPermutationAndInvertUndoesIt) {
  Random random;
  const QpnPermutation permutation(random);
  std::vector<bool> seen(1u << 18);
  for (uint32_t i = 0; i < 1u << 18; ++i) {
    const uint32_t number = permutation.Apply(i);
    ASSERT_LT(number, 1u << 18);
    ASSERT_FALSE(seen[number]);
    seen[number] = true;
    ASSERT_EQ(permutation.Invert(number), i);
  }
}

TEST(QpnPermutation, Apply_NeighboursAreFarApart) {
  Random random;
  const QpnPermutation permutation(random);
  // Differences of successive numbers: a counter would show one value, here hardly any repeats.
  std::map<int64_t, int> differences;
  for (uint32_t i = 0; i + 1 < 4096; ++i) {
    ++differences[int64_t{permutation.Apply(i + 1)} - permutation.Apply(i)];
  }
  EXPECT_GT(differences.size(), 3800u);
}

TEST(QpnAllocator, Take_LeadsToTheWorker) {
  Random random;
  for (const size_t workers : {1u, 2u, 3u, 64u}) {
    const port::SteeringTable steering(workers);
    QpnAllocator allocator(steering, workers, random);
    for (size_t i = 0; i < 1000; ++i) {
      const auto worker = static_cast<WorkerIndex>(i % workers);
      const auto qpn = allocator.Take(worker, kStart);
      ASSERT_TRUE(qpn.has_value());
      EXPECT_EQ(steering.WorkerOf(*qpn), worker);
    }
    EXPECT_EQ(allocator.in_use(), 1000u);
  }
}

TEST(QpnAllocator, Take_AllNumbersOfABucketOnceAndNoneOfTheReserved) {
  Random random;
  port::SteeringTable steering(64);
  // Buckets 0 and 63 have the reserved numbers.
  for (const WorkerIndex worker : {WorkerIndex{0}, WorkerIndex{63}}) {
    QpnAllocator allocator(steering, 64, random);
    std::set<uint32_t> given;
    while (const auto qpn = allocator.Take(worker, kStart)) {
      ASSERT_TRUE(given.insert(qpn->value).second);
      ASSERT_NE(*qpn, kInvalidQpn);
      ASSERT_NE(*qpn, kGsiQpn);
      ASSERT_NE(*qpn, kMulticastQpn);
    }
    EXPECT_EQ(given.size(), (1u << 18) - (worker == 0 ? 2 : 1));
  }
}

TEST(QpnAllocator, Give_RestsBeforeItComesBack) {
  Random random;
  QpnAllocator allocator(port::SteeringTable(64), 64, random, Seconds(2));
  std::optional<Qpn> last;
  while (const auto qpn = allocator.Take(5, kStart)) last = qpn;
  ASSERT_TRUE(last.has_value());
  allocator.Give(*last, kStart);
  EXPECT_FALSE(allocator.Take(5, kStart + Milliseconds(1999)).has_value());
  EXPECT_EQ(allocator.Take(5, kStart + Milliseconds(2000)), last);
  EXPECT_FALSE(allocator.Take(5, kStart + Seconds(100)).has_value());
}

TEST(QpnAllocator, ManyThatComeAndGo_ReuseNumbersLate) {
  Random random;
  QpnAllocator allocator(port::SteeringTable(64), 64, random, Seconds(2));
  std::map<uint32_t, int> last_given;
  for (int i = 0; i < 50000; ++i) {
    const TimePoint now = kStart + Seconds(i);
    const auto qpn = allocator.Take(5, now);
    ASSERT_TRUE(qpn.has_value());
    const auto [known, fresh] = last_given.try_emplace(qpn->value, i);
    if (!fresh) {
      ASSERT_GE(i - known->second, static_cast<int>(QpnAllocator::kManyResting));
      known->second = i;
    }
    allocator.Give(*qpn, now);
  }
  EXPECT_LE(last_given.size(), QpnAllocator::kManyResting + 2) << "as many as rest at a time";
}

TEST(KeyGenerator, Take_UniqueAndNeverTheSpecialOnes) {
  Random random;
  KeyGenerator keys(random);
  std::set<uint32_t> given;
  for (int i = 0; i < 200000; ++i) {
    const MemoryKey key = keys.Take();
    ASSERT_TRUE(given.insert(key.value).second);
    ASSERT_NE(key.value, 0u);
    ASSERT_NE(key.value, 0xFFFFFFFFu);
  }
}

TEST(KeyGenerator, Take_BitsAreEvenAndIndependent) {
  Random random;
  KeyGenerator keys(random);
  constexpr int kKeys = 100000;
  std::array<int, 32> ones{};
  std::array<int, 33> changed{};
  uint32_t before = 0;
  for (int i = 0; i < kKeys; ++i) {
    const uint32_t key = keys.Take().value;
    for (int b = 0; b < 32; ++b) ones[b] += static_cast<int>(key >> b & 1);
    ++changed[std::popcount(key ^ before)];
    before = key;
  }
  // Six standard deviations.
  for (const int count : ones) EXPECT_NEAR(count, kKeys / 2, 950);
  double mean = 0;
  for (int i = 0; i <= 32; ++i) mean += static_cast<double>(i) * changed[i] / kKeys;
  EXPECT_NEAR(mean, 16, 0.06);
}

TEST(KeyGenerator, Windows_HaveAllKeysOfTheirName) {
  Random random;
  KeyGenerator keys(random);
  std::set<uint32_t> names;
  // Enough of both that they would collide by chance.
  for (int i = 0; i < 20000; ++i) {
    const uint32_t name = keys.TakeForWindow().value >> 8;
    ASSERT_TRUE(names.insert(name).second);
    ASSERT_NE(name, 0u);
    ASSERT_NE(name, 0xFFFFFFu);
    for (int k = 0; k < 5; ++k) ASSERT_FALSE(names.contains(keys.Take().value >> 8));
  }
}

TEST(KeyGenerator, TakeForWindow_NoNameThatARegionsKeyHas) {
  Random random;
  KeyGenerator keys(random);
  std::set<uint32_t> regions;
  for (int i = 0; i < 100000; ++i) regions.insert(keys.Take().value >> 8);
  for (int i = 0; i < 2000; ++i) ASSERT_FALSE(regions.contains(keys.TakeForWindow().value >> 8));
}

TEST(KeyGenerator, GiveFromWindow_RestsUntilManyOthersWereGiven) {
  Random random;
  KeyGenerator keys(random);
  const uint32_t first = keys.TakeForWindow().value >> 8;
  keys.GiveFromWindow(MemoryKey{first << 8 | 7});
  for (size_t i = 0; i < KeyGenerator::kResting; ++i) {
    const MemoryKey key = keys.TakeForWindow();
    ASSERT_NE(key.value >> 8, first);
    keys.GiveFromWindow(key);
  }
}

TEST(QpnAllocator, RestUntil_OutlastsTheUsualRest) {
  Random random;
  QpnAllocator allocator(port::SteeringTable(64), 64, random, Seconds(2));
  std::optional<Qpn> last;
  while (const auto qpn = allocator.Take(5, kStart)) last = qpn;
  ASSERT_TRUE(last.has_value());
  // Reported while it is in use, as by the connection manager.
  allocator.RestUntil(*last, kStart + Seconds(60), kStart);
  allocator.Give(*last, kStart);
  EXPECT_FALSE(allocator.Take(5, kStart + Seconds(59)).has_value());
  EXPECT_EQ(allocator.Take(5, kStart + Seconds(60)), last);
}

TEST(QpnAllocator, RestUntil_ThoseThatAreOverAreForgotten) {
  Random random;
  QpnAllocator allocator(port::SteeringTable(64), 64, random);
  for (uint32_t i = 0; i < 100000; ++i) {
    const TimePoint now = kStart + Milliseconds(i);
    allocator.RestUntil(Qpn{i + 2}, now + Milliseconds(100), now);
  }
  EXPECT_LT(allocator.resting_longer(), 4096u);
}

TEST(LogLimiter, Say_BurstThenARateAndACount) {
  std::vector<std::string> lines;
  LogLimiter log([&](Severity, const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 1000; ++i) log.Say(Severity::kInfo, "x", kStart);
  EXPECT_EQ(lines.size(), static_cast<size_t>(LogLimiter::kBurst));
  log.Say(Severity::kInfo, "later", kStart + Seconds(1));
  ASSERT_EQ(lines.size(), static_cast<size_t>(LogLimiter::kBurst) + 2);
  EXPECT_NE(lines[lines.size() - 2].find("900"), std::string::npos);
  EXPECT_EQ(lines.back(), "later");
}

TEST(KeyGenerator, Give_RestsUntilManyOthersWereGiven) {
  Random random;
  KeyGenerator keys(random);
  const MemoryKey first = keys.Take();
  keys.Give(first);
  EXPECT_EQ(keys.in_use(), 0u);
  for (size_t i = 0; i < KeyGenerator::kResting; ++i) {
    const MemoryKey key = keys.Take();
    ASSERT_NE(key, first);
    keys.Give(key);
  }
  EXPECT_EQ(keys.in_use(), 0u);
}

}  // namespace
}  // namespace rocegw::session
