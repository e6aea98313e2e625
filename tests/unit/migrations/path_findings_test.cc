// SPDX-License-Identifier: Apache-2.0
// What a preflight makes of the measurements of a path and of quotas: what blocks, what warns.
#include "controlplane/migrations/nodes/path_findings.h"

#include <algorithm>

#include "tests/unit/migrations/driven_cluster.h"

namespace rocegw::migrations {
namespace {

using migration::Finding;
using migration::MigrationState;
using migration::Record;
using migration::Verb;
using types::v1::PlainPath;

// A path without any fault, RDMA as fast as TCP.
NodeAnswer Good() {
  NodeAnswer answer{.median_ns = 40'000, .bytes_per_second = 500'000'000};
  PlainPath& path = answer.plain.emplace();
  path.set_sent(400);
  path.set_received(400);
  path.set_dscp_kept(400);
  path.set_ecn_kept(400);
  path.set_tcp_round_trip_median_ns(40'000);
  path.set_tcp_bytes_per_second(500'000'000);
  path.set_clock_ahead_ns(-900'000'000);
  return answer;
}

struct Row {
  const char* name;
  std::function<void(NodeAnswer&)> change;
  const char* kind;
  const char* text;
};

TEST(PathFindings, EachFaultIsFoundAndHasARemedy) {
  const Row rows[] = {
      {"loss", [](NodeAnswer& a) { a.plain->set_received(396); }, "blocks",
       "4 of 400 datagrams are lost"},
      {"little loss", [](NodeAnswer& a) { a.plain->set_received(397); }, "warns",
       "3 of 400 datagrams are lost"},
      {"nothing arrives", [](NodeAnswer& a) { a.plain->set_received(0); }, "warns",
       "no datagram arrived on a UDP port beside 4791: loss, order, DSCP and ECN are not measured"},
      {"reorder", [](NodeAnswer& a) { a.plain->set_reordered(2); }, "warns",
       "2 of 400 datagrams arrive after a later one"},
      {"DSCP", [](NodeAnswer& a) { a.plain->set_dscp_kept(0); }, "warns",
       "the DSCP is changed on the way: kept for 0 of 400"},
      {"ECN", [](NodeAnswer& a) { a.plain->set_ecn_kept(399); }, "warns",
       "the ECN mark is removed on the way: kept for 399 of 400"},
      {"congestion",
       [](NodeAnswer& a) {
         a.plain->set_ecn_kept(390);
         a.plain->set_ecn_marked(10);
       },
       "warns", "10 of 400 datagrams met congestion"},
      {"clocks", [](NodeAnswer& a) { a.plain->set_clock_ahead_ns(-1'500'000'000); }, "warns",
       "the clocks differ by 1 s"},
      {"clocks far apart", [](NodeAnswer& a) { a.plain->set_clock_ahead_ns(75'000'000'000); },
       "blocks", "the clocks differ by 75 s"},
      {"latency", [](NodeAnswer& a) { a.median_ns = 81'000; }, "warns",
       "round trips take 81 us, over TCP 40 us"},
      {"bandwidth", [](NodeAnswer& a) { a.bytes_per_second = 200'000'000; }, "warns",
       "bulk passes with 200 MB/s, over TCP with 500 MB/s"},
      {"not measured", [](NodeAnswer& a) { a.plain->set_problem("TCP to \033 refused"); }, "warns",
       "not all of the network beside RDMA is measured: TCP to \\x1b refused"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    NodeAnswer answer = Good();
    row.change(answer);
    std::vector<Finding> found = PathFindings("n1 to n2", answer);
    // Marks are those of the datagrams that arrived.
    std::erase_if(found, [&](const Finding& finding) { return finding.text != row.text; });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(WordOf(found[0].kind), row.kind);
    EXPECT_EQ(found[0].subject, "n1 to n2");
    EXPECT_NE(found[0].remedy, "");
  }
}

TEST(PathFindings, AGoodPathHasNone) { EXPECT_TRUE(PathFindings("n1 to n2", Good()).empty()); }

// An agent that does not know the measurement, or drops it, must not look like a good path.
TEST(PathFindings, AnUnmeasuredPathWarns) {
  const std::vector<Finding> found = PathFindings("n1 to n2", {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, Finding::Class::kWarns);
  EXPECT_EQ(found[0].text,
            "the network beside RDMA is not measured: loss, order, DSCP, ECN and clocks are not "
            "known");
  for (const bool clock : {true, false}) {
    NodeAnswer answer = Good();
    clock ? answer.plain->clear_clock_ahead_ns() : answer.plain->Clear();
    const std::vector<Finding> part = PathFindings("n1 to n2", answer);
    ASSERT_EQ(part.size(), 1U);
    EXPECT_EQ(part[0].text,
              "not all of the network beside RDMA is measured: the probes say nothing of datagrams "
              "or clocks");
  }
}

TEST(PathFindings, ClocksThatAreAsFarApartAsNumbersGoBlock) {
  for (const int64_t ahead : {INT64_MIN, INT64_MAX}) {
    NodeAnswer answer = Good();
    answer.plain->set_clock_ahead_ns(ahead);
    const std::vector<Finding> found = PathFindings("n1 to n2", answer);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kind, Finding::Class::kBlocks);
  }
}

TEST(Preflight, WarningsLetTheMigrationStartAndAreKept) {
  DrivenCluster cluster({.nodes = 3, .approval = false});
  NodeAnswer answer = Good();
  answer.plain->set_dscp_kept(0);
  cluster.nodes().SetPlain(*answer.plain);
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kPreflighted));
  const Record record = cluster.Stored().record;
  // Each of three paths; the one from n2 is slower than TCP, too.
  EXPECT_TRUE(record.reason.ends_with("; warnings: 4")) << record.reason;
  ASSERT_EQ(record.findings.size(), 4U);
  EXPECT_EQ(record.findings[0].text, "the DSCP is changed on the way: kept for 0 of 400");
  EXPECT_EQ(cluster.Give({.verb = Verb::kStart}), "");
}

TEST(Preflight, AFindingThatBlocksComesFirst) {
  DrivenCluster cluster({.nodes = 3});
  NodeAnswer answer = Good();
  answer.plain->set_reordered(1);
  answer.plain->set_clock_ahead_ns(3'600'000'000'000);
  cluster.nodes().SetPlain(*answer.plain);
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  const Record record = cluster.Stored().record;
  EXPECT_EQ(record.state, MigrationState::kPlanned);
  // The first path that blocks ends the tests; those under way are awaited.
  EXPECT_TRUE(std::ranges::is_sorted(record.findings, {}, &Finding::kind));
  ASSERT_GE(record.findings.size(), 2U);
  EXPECT_EQ(record.findings.front().text, "the clocks differ by 3600 s");
  EXPECT_EQ(record.findings.front().kind, Finding::Class::kBlocks);
  EXPECT_EQ(record.findings.back().kind, Finding::Class::kWarns);
  EXPECT_NE(record.reason.find("the clocks differ by 3600 s"), std::string::npos) << record.reason;
  EXPECT_NE(cluster.Give({.verb = Verb::kStart}), "");
}

// Failure case 19: queue pairs grow with the square of the nodes.
TEST(Preflight, C19_AQuotaThatDoesNotHoldAllPeersBlocks) {
  DrivenCluster cluster({.nodes = 4});
  cluster.nodes().SetFreeQps("n1", 3);
  cluster.nodes().SetFreeQps("n3", 2);
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  const Record record = cluster.Stored().record;
  EXPECT_EQ(record.state, MigrationState::kPlanned);
  ASSERT_EQ(record.findings.size(), 1U);
  EXPECT_EQ(record.findings[0].subject, "n3");
  EXPECT_EQ(record.findings[0].text, "2 more queue pairs fit the quota, and 3 peers need one each");
  cluster.nodes().SetFreeQps("n3", 3);
  EXPECT_EQ(cluster.Give({.verb = Verb::kPreflight}), "");
  EXPECT_TRUE(cluster.AwaitState(MigrationState::kPreflighted));
  EXPECT_TRUE(cluster.Stored().record.findings.empty());
}

// Limits of units, degraded data and a lost vote are found at every node before the first one
// changes.
TEST(Preflight, NodesThatAreNotHealthyBlockAndAllAreNamed) {
  DrivenCluster cluster({.nodes = 4});
  cluster.nodes().SetIll("n2", "kv.service has LimitMEMLOCK=65536, less than infinity");
  cluster.nodes().SetIll("n4", "2 of 64 placement groups are not clean: active+degraded");
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  const Record record = cluster.Stored().record;
  EXPECT_EQ(record.state, MigrationState::kPlanned);
  ASSERT_EQ(record.findings.size(), 2U);
  EXPECT_EQ(record.findings[0].subject, "n2");
  EXPECT_EQ(record.findings[0].text,
            "health: kv.service has LimitMEMLOCK=65536, less than infinity");
  EXPECT_EQ(record.findings[1].subject, "n4");
  EXPECT_NE(record.findings[1].remedy, "");
  cluster.nodes().SetIll("n2", "");
  cluster.nodes().SetIll("n4", "");
  EXPECT_EQ(cluster.Give({.verb = Verb::kPreflight}), "");
  EXPECT_TRUE(cluster.AwaitState(MigrationState::kPreflighted));
}

// Failure case 28: a gateway was upgraded since the plan.
TEST(Preflight, C28_AGatewayOfAnotherVersionBlocks) {
  DrivenCluster cluster({.nodes = 3});
  cluster.nodes().SetVersion("n2", "1.3.0");
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  EXPECT_EQ(cluster.Stored().record.reason,
            "n2: health: the gateway has version 1.3.0, planned with 1.2.0 to 1.2.0");
}

TEST(Preflight, FindingsAreBounded) {
  DrivenCluster cluster({.nodes = 40});
  NodeAnswer answer = Good();
  answer.plain->set_dscp_kept(0);
  cluster.nodes().SetPlain(*answer.plain);
  cluster.nodes().Block("n40 to n1");
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  const Record record = cluster.Stored().record;
  ASSERT_EQ(record.findings.size(), migration::kMostFindings);
  EXPECT_EQ(record.findings[0].subject, "n40 to n1") << "the last path of all blocks";
}

}  // namespace
}  // namespace rocegw::migrations
