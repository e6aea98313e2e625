// SPDX-License-Identifier: Apache-2.0
// A model of a network floods the guard: sources with rates, and a port that applies the filter.
#include "gateway/worker/receive/flood_guard.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace rocegw::worker {
namespace {

using port::FloodFilter;
using port::FloodKind;

constexpr uint32_t kMostOther = FloodGuard::kMostOfStrangers[2];

struct Source {
  wire::Gid gid;
  FloodKind kind = FloodKind::kOther;
  uint32_t per_second = 0;
  bool taken = false;  // queue pairs take what it sends
  uint64_t sent = 0;
  uint64_t passed = 0;
};

class FloodGuardTest : public ::testing::Test {
 protected:
  static wire::Gid Host(uint32_t number) { return wire::Gid::FromV4(0x0A000000 + number); }

  // Runs all sources for so long, a millisecond at a time.
  void Run(std::vector<Source>& sources, Duration time) {
    for (const TimePoint end = now_ + time; now_ < end; now_ = now_ + Milliseconds(1)) {
      if (guard_.Look(now_)) port_ = guard_.filter();
      for (Source& source : sources) {
        // The rest of the division is sent with its probability.
        uint32_t count = source.per_second / 1000;
        count += random_() % 1000 < source.per_second % 1000 ? 1 : 0;
        for (; count > 0; --count) Send(source);
      }
    }
  }
  void Send(Source& source) {
    ++source.sent;
    const auto random = static_cast<uint32_t>(random_());
    if (random > port_.ShareOf(source.gid, source.kind)) return;
    ++source.passed;
    if (!source.taken)
      guard_.OnStray(source.gid, source.kind);
    else if (guard_.watching())
      guard_.OnPeer(source.gid, now_);
  }
  static void Forget(std::vector<Source>& sources) {
    for (Source& source : sources) source.sent = source.passed = 0;
  }

  std::mt19937 random_{7};
  TimePoint now_{Seconds(100).ns};
  FloodGuard guard_{SecretKey{1, 2}};
  FloodFilter port_;
};

// Returns a host of another bucket.
uint32_t InAnotherBucket(const FloodFilter& filter, const wire::Gid& than) {
  uint32_t number = 1000;
  while (filter.BucketOf(wire::Gid::FromV4(0x0A000000 + number)) == filter.BucketOf(than)) ++number;
  return number;
}

TEST_F(FloodGuardTest, FewStrays_AreNoFlood) {
  std::vector<Source> sources{{Host(1), FloodKind::kOther, kMostOther / 2},
                              {Host(2), FloodKind::kConnection, 4'000},
                              {Host(3), FloodKind::kDiscovery, 4'000}};
  Run(sources, Seconds(2));
  for (const Source& source : sources) EXPECT_EQ(source.passed, source.sent);
  EXPECT_TRUE(guard_.filter().empty());
  EXPECT_FALSE(guard_.watching());
  EXPECT_EQ(guard_.NextDeadline(), kNever);
}

TEST_F(FloodGuardTest, ShortBurst_IsNoFlood) {
  std::vector<Source> sources{{Host(1), FloodKind::kOther, 400'000}};
  Run(sources, Milliseconds(10));
  sources[0].per_second = 0;
  Run(sources, Seconds(1));
  EXPECT_TRUE(guard_.filter().empty());
  EXPECT_FALSE(guard_.watching());
}

TEST_F(FloodGuardTest, OneSource_GetsTheRestAndOthersAreNotHurt) {
  std::vector<Source> sources{{Host(1), FloodKind::kOther, 400'000}};
  sources.push_back({Host(InAnotherBucket(guard_.filter(), Host(1))), FloodKind::kOther, 500});
  sources.push_back({Host(1), FloodKind::kConnection, 300});
  Run(sources, Milliseconds(200));
  Forget(sources);
  Run(sources, Seconds(2));
  EXPECT_GT(sources[0].passed, kMostOther * 2 * 7 / 10);
  EXPECT_LT(sources[0].passed, kMostOther * 2 * 13 / 10);
  EXPECT_EQ(sources[1].passed, sources[1].sent);
  EXPECT_EQ(sources[2].passed, sources[2].sent) << "another kind";
}

TEST_F(FloodGuardTest, ForgedSources_AreBoundedTogether) {
  std::vector<Source> sources;
  for (uint32_t i = 0; i < 1000; ++i) sources.push_back({Host(i), FloodKind::kDiscovery, 400});
  Run(sources, Milliseconds(300));
  Forget(sources);
  Run(sources, Seconds(1));
  uint64_t passed = 0;
  for (const Source& source : sources) passed += source.passed;
  EXPECT_LT(passed, FloodGuard::kMostOfStrangers[1] * 13 / 10);
  EXPECT_GT(passed, FloodGuard::kMostOfStrangers[1] * 7 / 10);
}

TEST_F(FloodGuardTest, Peers_PassInTheSameBucket) {
  std::vector<Source> sources{{Host(1), FloodKind::kOther, 400'000}};
  for (uint32_t i = 0; i < 20; ++i) {
    sources.push_back({Host(10 + i), FloodKind::kOther, 2'000});
    sources.back().taken = true;
  }
  Run(sources, Milliseconds(200));
  Forget(sources);
  Run(sources, Seconds(1));
  for (size_t i = 1; i < sources.size(); ++i) EXPECT_EQ(sources[i].passed, sources[i].sent) << i;
}

TEST_F(FloodGuardTest, Peers_AllPassInAForgedFlood) {
  std::vector<Source> sources;
  for (uint32_t i = 0; i < 2000; ++i) sources.push_back({Host(i), FloodKind::kOther, 200});
  for (uint32_t i = 0; i < 100; ++i) {
    sources.push_back({Host(5000 + i), FloodKind::kOther, 2'000});
    sources.back().taken = true;
  }
  Run(sources, Milliseconds(500));
  Forget(sources);
  Run(sources, Milliseconds(500));
  for (size_t i = 2000; i < sources.size(); ++i) EXPECT_EQ(sources[i].passed, sources[i].sent) << i;
}

TEST_F(FloodGuardTest, NamedPeers_PassAlthoughTheyWereSilent) {
  std::vector<Source> sources;
  for (uint32_t i = 0; i < 2000; ++i) sources.push_back({Host(i), FloodKind::kOther, 200});
  EXPECT_FALSE(guard_.PeersWanted(now_)) << "no flood";
  for (int i = 0; i < 100 && !guard_.watching(); ++i) Run(sources, Milliseconds(1));
  ASSERT_TRUE(guard_.PeersWanted(now_));
  EXPECT_FALSE(guard_.PeersWanted(now_));
  for (uint32_t i = 0; i < 200; ++i) guard_.OnPeer(Host(5000 + i), now_);
  Run(sources, Milliseconds(200));
  uint32_t passing = 0;
  for (uint32_t i = 0; i < 200; ++i)
    passing += port_.ShareOf(Host(5000 + i), FloodKind::kOther) == port::kAllPass;
  EXPECT_GE(passing, 198u) << "a place may be taken by others";
  Run(sources, FloodGuard::kListEach);
  EXPECT_TRUE(guard_.PeersWanted(now_)) << "again";
}

TEST_F(FloodGuardTest, PeerThatBeginsLater_IsKnownSoon) {
  std::vector<Source> sources;
  for (uint32_t i = 0; i < 2000; ++i) sources.push_back({Host(i), FloodKind::kOther, 200});
  sources.push_back({Host(5000), FloodKind::kOther, 0});
  sources.back().taken = true;
  Run(sources, Milliseconds(300));
  sources.back().per_second = 2'000;
  Run(sources, Milliseconds(300));
  Forget(sources);
  Run(sources, Milliseconds(500));
  EXPECT_EQ(sources.back().passed, sources.back().sent);
}

TEST_F(FloodGuardTest, InAPeersName_MadsAreBoundedAndTheRestPasses) {
  std::vector<Source> sources{{Host(1), FloodKind::kOther, 2'000},
                              {Host(1), FloodKind::kConnection, 400'000}};
  sources[0].taken = true;
  Run(sources, Milliseconds(300));
  Forget(sources);
  Run(sources, Seconds(1));
  EXPECT_EQ(sources[0].passed, sources[0].sent);
  EXPECT_LT(sources[1].passed, FloodGuard::kMostOfKnown[0] * 13 / 10);
}

TEST_F(FloodGuardTest, EndOfTheFlood_EndsTheFilter) {
  std::vector<Source> sources{{Host(1), FloodKind::kOther, 400'000}};
  Run(sources, Seconds(1));
  EXPECT_FALSE(guard_.filter().empty());
  EXPECT_LE(guard_.NextDeadline(), now_ + FloodGuard::kWindow);
  sources[0].per_second = 0;
  Run(sources, Milliseconds(300));
  EXPECT_TRUE(guard_.filter().empty());
  EXPECT_TRUE(port_.empty()) << "the port was told";
  EXPECT_EQ(guard_.NextDeadline(), kNever);
}

TEST_F(FloodGuardTest, SteadyFlood_ChangesTheFilterSeldom) {
  std::vector<Source> sources{{Host(1), FloodKind::kOther, 400'000}};
  Run(sources, Milliseconds(300));
  int changes = 0;
  for (int i = 0; i < 1000; ++i) {
    if (guard_.Look(now_)) {
      port_ = guard_.filter();
      ++changes;
    }
    for (int k = 0; k < 400; ++k) Send(sources[0]);
    now_ = now_ + Milliseconds(1);
  }
  EXPECT_LE(changes, 15);
}

}  // namespace
}  // namespace rocegw::worker
