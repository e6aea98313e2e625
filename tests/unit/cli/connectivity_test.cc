// SPDX-License-Identifier: Apache-2.0
// connectivity test: its pairs, their order, and its output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "controlplane/cli/commands/connectivity_plan.h"
#include "controlplane/cli/commands/in_parallel.h"
#include "controlplane/cli/views/connectivity_view.h"

namespace rocegw::cli {
namespace {

using admin::v1::TestConnectivityResponse;
using ::testing::ElementsAre;

const std::vector<std::string> kFleet = {"gateways/a", "gateways/b", "gateways/c"};
const std::string& kA = kFleet[0];
const std::string& kB = kFleet[1];
const std::string& kC = kFleet[2];

std::vector<GatewayPair> Planned(const PairsWanted& wanted) {
  std::vector<GatewayPair> pairs;
  const CallResult result = PlanPairs(wanted, kFleet, pairs);
  EXPECT_TRUE(result.ok()) << result.text;
  return pairs;
}
int Refused(const PairsWanted& wanted, const std::vector<std::string>& fleet = kFleet) {
  std::vector<GatewayPair> pairs;
  const CallResult result = PlanPairs(wanted, fleet, pairs);
  EXPECT_EQ(result.ok(), result.text.empty());
  return result.code;
}

TEST(PlanPairs, OfSeveral_EachToEachOther) {
  EXPECT_THAT(Planned({.among = {kA, kB}}), ElementsAre(GatewayPair(kA, kB), GatewayPair(kB, kA)));
  EXPECT_EQ(Planned({.all = true}).size(), 6u);
  EXPECT_EQ(Planned({.among = {kA, kB, kA}}).size(), 2u) << "each pair once";
}

TEST(PlanPairs, FromAndTo_WithTheOtherSideLeftOut_AllOthers) {
  EXPECT_THAT(Planned({.from = {kB}}), ElementsAre(GatewayPair(kB, kA), GatewayPair(kB, kC)));
  EXPECT_THAT(Planned({.to = {kB}}), ElementsAre(GatewayPair(kA, kB), GatewayPair(kC, kB)));
  EXPECT_THAT(Planned({.from = {kC, kA}, .to = {kB}}),
              ElementsAre(GatewayPair(kC, kB), GatewayPair(kA, kB)));
  EXPECT_THAT(Planned({.from = {kA}, .to = {kA}}), ElementsAre(GatewayPair(kA, kA)))
      << "asked for by name";
}

TEST(PlanPairs, WhatMakesNoSense_Refused) {
  EXPECT_EQ(Refused({}), kUsage);
  EXPECT_EQ(Refused({.among = {kA}}), kUsage) << "no pair";
  EXPECT_EQ(Refused({.among = {kA, kB}, .all = true}), kUsage);
  EXPECT_EQ(Refused({.all = true, .from = {kA}}), kUsage);
  EXPECT_EQ(Refused({.all = true}, {kA}), kUsage);
  EXPECT_EQ(Refused({.among = {kA, "gateways/x"}}), kNotFound);
  EXPECT_EQ(Refused({.from = {kA}, .to = {"gateways/x"}}), kNotFound);
}

TEST(PlanPairs, MoreThanAnybodyWaitsFor_Refused) {
  std::vector<std::string> fleet;
  for (int i = 0; i < 50; ++i) fleet.push_back("gateways/" + std::to_string(i));
  EXPECT_EQ(Refused({.all = true}, fleet), kOk);
  fleet.push_back("gateways/50");
  EXPECT_EQ(Refused({.all = true}, fleet), kUsage);
  EXPECT_EQ(Refused({.from = {fleet[0]}}, fleet), kOk);
}

TEST(PairSchedule, NoGatewayIsInTwoTestsAtOnce) {
  std::vector<std::string> fleet;
  for (int i = 0; i < 6; ++i) fleet.push_back("gateways/" + std::to_string(i));
  std::vector<GatewayPair> pairs;
  ASSERT_TRUE(PlanPairs({.all = true}, fleet, pairs).ok());
  PairSchedule schedule(pairs);
  std::set<size_t> done;
  std::vector<size_t> running;
  while (!schedule.Exhausted() || !running.empty()) {
    std::set<std::string> busy;
    while (const auto pair = schedule.Begin()) running.push_back(*pair);
    for (const size_t pair : running) {
      EXPECT_TRUE(busy.insert(schedule.pair(pair).first).second);
      EXPECT_TRUE(busy.insert(schedule.pair(pair).second).second);
    }
    ASSERT_FALSE(running.empty());
    EXPECT_TRUE(done.insert(running.front()).second);
    schedule.End(running.front());
    running.erase(running.begin());
  }
  EXPECT_EQ(done.size(), pairs.size());
}

TEST(PairSchedule, OneWithItself_IsOneTest) {
  PairSchedule schedule({{kA, kA}, {kA, kB}});
  EXPECT_EQ(schedule.Begin(), 0u);
  EXPECT_EQ(schedule.Begin(), std::nullopt);
  schedule.End(0);
  EXPECT_EQ(schedule.Begin(), 1u);
  EXPECT_TRUE(schedule.Exhausted());
}

TEST(InParallel, EachOnce_AndNoMoreAtATimeThanMay) {
  std::atomic<int> now{0};
  std::atomic<bool> too_many{false};
  std::vector<std::atomic<int>> times(100);
  InParallel(times.size(), [&](size_t i) {
    if (static_cast<size_t>(++now) > kMostAtATime) too_many = true;
    ++times[i];
    --now;
  });
  EXPECT_FALSE(too_many);
  for (const auto& count : times) EXPECT_EQ(count, 1);
  InParallel(0, [&](size_t) { ADD_FAILURE(); });
}

std::vector<TestConnectivityResponse> Found() {
  std::vector<TestConnectivityResponse> tests(3);
  for (size_t i = 0; i < tests.size(); ++i) {
    tests[i].set_from("gateways/host-a");
    tests[i].set_to(i == 0 ? "gateways/host-b" : "gateways/host-c");
  }
  types::v1::Connectivity& good = *tests[0].mutable_connectivity();
  tests[0].set_address("192.0.2.2");
  good.set_connect_ns(3'200'400);
  good.set_round_trips(1000);
  good.set_round_trip_min_ns(21'400);
  good.set_round_trip_median_ns(25'960);
  good.set_round_trip_p99_ns(110'000);
  good.set_bulk_bytes(64 << 20);
  good.set_bulk_bytes_per_second(1'250'000'000);
  good.set_transport("channel");
  good.set_transport_reason("a channel was agreed on by the CM");
  tests[1].set_address("192.0.2.3");
  tests[1].set_fault(types::v1::TIMED_OUT);
  tests[1].set_noticed_at("gateways/host-a");
  tests[1].set_message("no answer in time while connecting to 192.0.2.3 (UDP port 4791)");
  tests[1].set_remedy("rocegwctl doctor -g host-a");
  tests[2].set_from("gateways/host-b");
  tests[2].set_fault(types::v1::AGENT_AWAY);
  tests[2].set_noticed_at("gateways/host-c");
  tests[2].set_message("the agent of gateways/host-c is not connected to this controller");
  return tests;
}

TEST(ConnectivityView, RowsAndReasons) {
  EXPECT_EQ(ConnectivityView(Found(), false),
            "FROM    TO      RESULT  MIN-US  MEDIAN    P99  GBIT/S  TRANSPORT\n"
            "host-a  host-b  ok        21.4    26.0  110.0   10.00  channel\n"
            "host-a  host-c  FAILED       -       -      -       -  timed out\n"
            "host-b  host-c  FAILED       -       -      -       -  agent away\n"
            "\n"
            "host-a to host-c, seen at host-a: timed out\n"
            "    no answer in time while connecting to 192.0.2.3 (UDP port 4791)\n"
            "    remedy: rocegwctl doctor -g host-a\n"
            "\n"
            "host-b to host-c, seen at host-c: agent away\n"
            "    the agent of gateways/host-c is not connected to this controller\n"
            "\n"
            "1 ok, 2 failed\n");
  const std::string wide = ConnectivityView(Found(), true);
  EXPECT_NE(wide.find("192.0.2.2      3200.4  a channel was agreed on by the CM"),
            std::string::npos)
      << wide;
  EXPECT_EQ(CodeOf(Found()), kConditionFalse);
  EXPECT_EQ(CodeOf({Found()[0]}), kOk);
}

TEST(ConnectivityView, TheNetworkBesideRdma) {
  std::vector<TestConnectivityResponse> tests = {Found()[0], Found()[0], Found()[1]};
  types::v1::PlainPath& path = *tests[0].mutable_connectivity()->mutable_plain();
  path.set_sent(400);
  path.set_received(396);
  path.set_reordered(2);
  path.set_dscp_kept(0);
  path.set_ecn_kept(390);
  path.set_ecn_marked(6);
  path.set_tcp_round_trip_median_ns(41'000);
  path.set_tcp_bytes_per_second(2'500'000'000);
  path.set_clock_ahead_ns(-12'340'000);
  tests[1].mutable_connectivity()->mutable_plain()->set_problem(
      "the kernel of the other host does not have 192.0.2.2");
  EXPECT_NE(ConnectivityView(tests, false)
                .find("\nbeside RDMA:\n"
                      "FROM    TO       LOST  REORDERED  DSCP  ECN   TCP-US  GBIT/S  CLOCK-MS\n"
                      "host-a  host-b  4/400          2  lost  kept    41.0   20.00     -12.3\n"
                      "host-a  host-b      -          -  -     -          -       -         -\n"
                      "\n"
                      "host-a to host-b, beside RDMA:\n"
                      "    the kernel of the other host does not have 192.0.2.2\n"),
            std::string::npos)
      << ConnectivityView(tests, false);
}

}  // namespace
}  // namespace rocegw::cli
