// SPDX-License-Identifier: Apache-2.0
// Results that scenarios must have, in virtual time: equal arguments give equal runs, Go-Back-N
// comes close to its bound under loss, RNICs and gateways communicate at full rate, and a thousand
// hosts fit one process. Also the formatting of reports.
#include "tests/sim/scenarios/scenarios.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace rocegw::sim {
namespace {

TEST(Scenarios, EqualArguments_GiveEqualReports) {
  const auto run = [](uint64_t seed) {
    return Csv(RunScenario("pair", seed, {{"ms", "2"}, {"warmup_ms", "1"}, {"lose", "0.01"}}));
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(Scenarios, UnknownSetting_IsRefused) {
  EXPECT_FALSE(RunScenario("pair", 1, {{"colour", "red"}}).failure.empty());
  EXPECT_FALSE(RunScenario("nothing", 1, {}).failure.empty());
}

TEST(Oracle, HandsHostsOver_UntilThereWereSoMany) {
  for (const char* what : {"queue_pairs", "workers"}) {
    const Report report = RunScenario(
        "oracle", 1, {{"seeds", "1"}, {"hand_overs", what}, {"least_hand_overs", "30"}});
    EXPECT_TRUE(report.failure.empty()) << report.failure;
    EXPECT_GE(report.Value("hand-overs"), 30);
  }
  EXPECT_EQ(RunScenario("oracle", 1, {{"seeds", "2"}}).Value("hand-overs"), 0);
  EXPECT_FALSE(RunScenario("oracle", 1, {{"hand_overs", "some"}}).failure.empty());
}

// Window and round trip as in the report: a full NIC queue of 128 packets of 1106 bytes at 100
// Gbit/s, and twice a microsecond.
TEST(GoBackN, UnderRandomLoss_ReachesItsBound) {
  const Report report = RunScenario(
      "loss-sweep", 1,
      {{"cc", "static"}, {"losses", "0.001,0.01,0.05"}, {"ms", "20"}, {"warmup_ms", "2"}});
  std::printf("%s", Text(report).c_str());
  EXPECT_TRUE(report.failure.empty()) << report.failure;
  EXPECT_GE(report.Value("bound share at 0.001"), 0.95);
  EXPECT_GE(report.Value("bound share at 0.01"), 0.95);
  EXPECT_GE(report.Value("bound share at 0.05"), 0.95);
}

// The goodput is that of a lossless run minus the lost share; hardly more is sent again than was
// lost.
TEST(Channels, UnderRandomLoss_LoseOnlyWhatIsLost) {
  const Report report = RunScenario(
      "loss", 1,
      {{"cc", "static"}, {"losses", "0.001,0.01,0.05"}, {"ms", "20"}, {"warmup_ms", "2"}});
  std::printf("%s", Text(report).c_str());
  EXPECT_TRUE(report.failure.empty()) << report.failure;
  EXPECT_GT(report.Value("lossless channel"), 85);
  for (const auto& [name, p] : {std::pair{"0.001", 0.001}, {"0.01", 0.01}, {"0.05", 0.05}}) {
    EXPECT_GE(report.Value(std::string("channel at ") + name), 0.98 * (1 - p));
    EXPECT_LE(report.Value(std::string("channel again/lost at ") + name), 1.1);
    EXPECT_GT(report.Value(std::string("channel again/lost at ") + name), 0.9);
  }
}

TEST(Rnic, WithGateway_EitherWayFillsTheLink) {
  for (const auto& [from, to] :
       {std::pair{"gateway", "rnic"}, {"rnic", "gateway"}, {"rnic", "rnic"}}) {
    const Report report =
        RunScenario("pair", 1, {{"from", from}, {"to", to}, {"ms", "2"}, {"warmup_ms", "1"}});
    EXPECT_GT(report.Value("utilisation"), 0.97) << from << " to " << to;
    EXPECT_EQ(report.Value("sent again"), 0) << from << " to " << to;
  }
}

TEST(Fleet, ThousandHosts_AllAreServed) {
  const Report report = RunScenario("fleet", 1, {{"hosts", "1024"}, {"each_kb", "32"}});
  std::printf("%s", Text(report).c_str());
  EXPECT_TRUE(report.failure.empty()) << report.failure;
  EXPECT_EQ(report.Value("flows done"), 1024);
  // The sanitizer's allocator rounds up more.
#ifdef __SANITIZE_ADDRESS__
  constexpr double kMostMemory = 500;
#else
  constexpr double kMostMemory = 400;
#endif
  EXPECT_LT(report.Value("memory of a host"), kMostMemory);
}

TEST(Report, Jain_IsOneForEqualsAndLessForOthers) {
  EXPECT_DOUBLE_EQ(JainIndex({5, 5, 5}), 1);
  EXPECT_DOUBLE_EQ(JainIndex({1, 0, 0, 0}), 0.25);
  EXPECT_NEAR(JainIndex({1, 3}), 0.8, 1e-9);
}

TEST(Report, Percentile_IsTheSmallestThatCoversTheShare) {
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 0.99), 4);
  EXPECT_EQ(Percentile({}, 0.5), 0);
}

TEST(Report, Svg_HasALineForEverySeries) {
  Report report;
  report.series.push_back({"a<b", "KiB", {0, 1, 2}, {1, 5, 2}});
  report.series.push_back({"c", "Gbit/s", {0, 1}, {1, 2}});
  const std::string svg = Svg(report, "t&t");
  size_t lines = 0;
  for (size_t at = svg.find("<polyline"); at != std::string::npos;
       at = svg.find("<polyline", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 2u);
  EXPECT_NE(svg.find("a&lt;b"), std::string::npos);
  EXPECT_NE(svg.find("t&amp;t"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::sim
