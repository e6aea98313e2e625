// SPDX-License-Identifier: Apache-2.0
// Congestion control of channels: production workers, queue pairs and channels of many gateways
// that share one link. The figures are those of the scenarios that `scripts/sim` runs;
// docs/develop/congestion_control.md describes the network.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/sim/scenarios/scenarios.h"

namespace rocegw::sim {
namespace {

using Changes = std::vector<std::pair<std::string, std::string>>;

// Links of 25 Gbit/s and 2 us, packets of 4096 bytes. Over one switch a full packet and its
// acknowledgement take 10.7 us, in which the link carries 33 KB; over two switches 16 us, 50 KB. A
// switch stamps hints between a tenth of that and all of it, or marks from half of it on.
Report Observe(const char* scenario, const std::string& law, const Changes& changes,
               bool two_switches = false) {
  Changes all = {{"gbps", "25"},    {"delay_us", "2"}, {"mtu_code", "5"}, {"window_kb", "256"},
                 {"channels", "1"}, {"cc", law},       {"ecn", "none"}};
  if (law == "caqm") {
    all.emplace_back("hint_low_kb", two_switches ? "5" : "3");
    all.emplace_back("hint_high_kb", two_switches ? "50" : "33");
  }
  if (law == "dctcp") {
    all.emplace_back("ecn", "step");
    all.emplace_back("kmin_kb", two_switches ? "25" : "17");
  }
  all.insert(all.end(), changes.begin(), changes.end());
  const Report report = RunScenario(scenario, 1, all);
  std::printf("%s %s\n%s", scenario, law.c_str(), Text(report).c_str());
  EXPECT_TRUE(report.failure.empty()) << report.failure;
  return report;
}

struct Share {
  const char* law;
  int flows;
  const char* topology;
};

class ChannelShares : public ::testing::TestWithParam<Share> {};

TEST_P(ChannelShares, AreEqualAndUseTheLink) {
  const std::string topology = GetParam().topology;
  const Report report = Observe(
      "fairness", GetParam().law,
      {{"flows", std::to_string(GetParam().flows)}, {"topology", topology}}, topology == "pairs");
  EXPECT_GE(report.Value("jain"), 0.98);
  EXPECT_GE(report.Value("utilisation"), 0.95);
  EXPECT_EQ(report.Value("lost"), 0);
  EXPECT_EQ(report.Value("sent again"), 0);
  EXPECT_EQ(report.Value("timeouts"), 0);
}

INSTANTIATE_TEST_SUITE_P(Laws, ChannelShares,
                         ::testing::Values(Share{"caqm", 2, "star"}, Share{"caqm", 8, "star"},
                                           Share{"caqm", 64, "star"}, Share{"caqm", 2, "pairs"},
                                           Share{"caqm", 8, "pairs"}, Share{"caqm", 64, "pairs"},
                                           Share{"swift", 2, "star"}, Share{"swift", 8, "star"},
                                           Share{"swift", 64, "star"}, Share{"swift", 2, "pairs"},
                                           Share{"swift", 8, "pairs"}, Share{"swift", 64, "pairs"},
                                           Share{"dctcp", 2, "star"}, Share{"dctcp", 8, "star"},
                                           Share{"dctcp", 64, "star"}, Share{"dctcp", 2, "pairs"},
                                           Share{"dctcp", 8, "pairs"}, Share{"dctcp", 64, "pairs"}),
                         [](const auto& test) {
                           return std::string(test.param.law) + "_" +
                                  std::to_string(test.param.flows) + "_" + test.param.topology;
                         });

// A window limits the throughput per round trip, on a channel as natively. On a link of 2 us, a
// packet and its acknowledgement take 5.3 us: 6.2 Gbit/s for each packet in the window.
TEST(PoolWindow, BoundsAQueuePairOnAChannelAsNatively) {
  const auto goodput = [](const char* channels, const char* window) {
    return Observe("pair", channels[0] == '1' ? "caqm" : "static",
                   {{"channels", channels}, {"pool_window_kb", window}})
        .Value("goodput");
  };
  for (const char* channels : {"0", "1"}) {
    EXPECT_GE(goodput(channels, "0"), 20) << channels;
    const double two_packets = goodput(channels, "8");
    EXPECT_LE(two_packets, 12.4) << channels;
    EXPECT_GE(two_packets, 6.2) << channels;
    const double one_packet = goodput(channels, "4");
    EXPECT_LE(one_packet, 6.2) << channels;
    EXPECT_GE(one_packet, 3.1) << channels;
  }
}

class ChannelLaw : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Laws, ChannelLaw, ::testing::Values("caqm", "swift", "dctcp"),
                         [](const auto& test) { return std::string(test.param); });

// A hundred flows start at once with 16 packets each, 6.5 MB, with queues for 4 MB and for 1 MB. A
// channel has no timeout that retransmits; it sends a probe when nothing has come back.
TEST_P(ChannelLaw, HundredToOne_RepeatsWhatWasLostAndNothingElse) {
  for (const char* queue : {"4096", "1024"}) {
    const Report report =
        Observe("incast", GetParam(), {{"flows", "100"}, {"each_kb", "1024"}, {"queue_kb", queue}});
    EXPECT_GE(report.Value("goodput until all are done"), 0.9) << queue;
    EXPECT_GT(report.Value("lost"), 0) << queue;
    EXPECT_LE(report.Value("sent again"), report.Value("lost")) << queue;
    EXPECT_EQ(report.Value("timeouts"), 0) << queue;
    EXPECT_LE(report.Value("probes"), 100) << queue;
  }
}

// The mean over 25 round trips comes within a quarter of the fair share, and stays there for fifty.
struct Join {
  const char* law;
  int flows;
};
class ChannelJoin : public ::testing::TestWithParam<Join> {};
INSTANTIATE_TEST_SUITE_P(Laws, ChannelJoin,
                         ::testing::Values(Join{"caqm", 1}, Join{"caqm", 3}, Join{"caqm", 7},
                                           Join{"swift", 1}, Join{"swift", 3}, Join{"swift", 7}),
                         [](const auto& test) {
                           return std::string(test.param.law) + "_" +
                                  std::to_string(test.param.flows);
                         });

TEST_P(ChannelJoin, HasItsShareWithinFiftyRoundTrips) {
  // The target round trip of Swift is 100 us.
  const bool swift = std::string(GetParam().law) == "swift";
  const int starts = swift ? 12 : 32;
  for (int after = 8; after < 8 + starts; ++after) {
    const Report report = Observe("join", GetParam().law,
                                  {{"flows", std::to_string(GetParam().flows)},
                                   {"message_kb", "4"},
                                   {"depth", "128"},
                                   {"warmup_ms", std::to_string(after)},
                                   {"ms", swift ? "40" : "10"}});
    EXPECT_GE(report.Value("converged after round trips"), 0) << after;
    EXPECT_LE(report.Value("converged after round trips"), 50) << after;
  }
}

}  // namespace
}  // namespace rocegw::sim
