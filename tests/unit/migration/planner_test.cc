// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/plan/planner.h"

#include <gtest/gtest.h>

#include "tests/support/migration/plans.h"

namespace rocegw::migration {
namespace {

std::string ProblemOf(const Inventory& inventory, const PlanRequest& request) {
  const PlanResult result = MakePlan(inventory, request);
  return result.problems.empty() ? "" : result.problems.front();
}

std::vector<uint32_t> Counts(const char* text, uint32_t total) {
  std::string problem;
  const auto sizes = ReadWaveSizes(text, problem);
  EXPECT_EQ(problem, "") << text;
  return CountsOf(sizes, total);
}

TEST(WaveSizes, CountNodesAndPercentagesOfAll) {
  EXPECT_EQ(Counts("canary=1,10%,50%,100%", 100), (std::vector<uint32_t>{1, 9, 40, 50}));
  EXPECT_EQ(Counts("canary=1,10%,50%,100%", 3), (std::vector<uint32_t>{1, 0, 1, 1}));
  EXPECT_EQ(Counts("2,2", 10), (std::vector<uint32_t>{2, 8}));
  EXPECT_EQ(Counts("100%", 7), (std::vector<uint32_t>{7}));
}

TEST(WaveSizes, RefuseWhatIsNoSize) {
  for (const char* text :
       {"", "0", "0%", "101%", "x", "a=1,a=2", "50%,10%", "1,,2", "a b=1", "99999999999"}) {
    std::string problem;
    EXPECT_TRUE(ReadWaveSizes(text, problem).empty()) << text;
    EXPECT_NE(problem, "") << text;
  }
}

TEST(Planner, CanariesHoldNoVote) {
  Inventory inventory = TestInventory({.nodes = 6});
  inventory.nodes[0].quorum = true;
  const PlanResult result = MakePlan(inventory, TestRequest({.nodes = 6}));
  ASSERT_TRUE(result.problems.empty());
  EXPECT_FALSE(result.plan.nodes[result.plan.waves[0].nodes[0]].quorum);
  EXPECT_TRUE(result.plan.nodes[result.plan.waves.back().nodes.back()].quorum);
}

TEST(Planner, LeavesNodesThatHaveTheTransport) {
  Inventory inventory = TestInventory({});
  inventory.nodes[2].transport = Transport::kGateway;
  const PlanResult result = MakePlan(inventory, TestRequest({}));
  EXPECT_EQ(result.plan.nodes.size(), 5U);
  EXPECT_EQ(result.plan.skipped, std::vector<std::string>{"n3"});
}

TEST(Planner, PeersThatDoNotUnderstandEachOtherAreFoundInThePlan) {
  PlanShape shape = FlagDay(6);
  shape.flag_day = false;
  EXPECT_NE(ProblemOf(TestInventory(shape), TestRequest(shape)).find("flag day"),
            std::string::npos);
  shape.flag_day = true;
  shape.waves = "canary=1,100%";
  EXPECT_NE(ProblemOf(TestInventory(shape), TestRequest(shape)).find("one wave"),
            std::string::npos);
  shape.waves = "all=100%";
  EXPECT_TRUE(TestPlan(shape).flag_day);
}

TEST(Planner, GatewaysAndRnicsMixInEachClass) {
  for (const auto system_class : {SystemClass::kNegotiated, SystemClass::kDualPath,
                                  SystemClass::kFlagDay, SystemClass::kPerClient}) {
    PlanShape shape = Rolling(6);
    shape.system_class = system_class;
    const Plan plan = TestPlan(shape);
    EXPECT_FALSE(plan.flag_day);
    EXPECT_EQ(plan.waves.size(), 3U);
  }
}

TEST(Planner, ClientsThatCannotMoveKeepTheOldPathOfTheirNodes) {
  Inventory inventory = TestInventory({});
  inventory.clients.push_back({"kernel-1", {"n2", "n3"}, ClientKind::kPinned});
  const Plan plan = MakePlan(inventory, TestRequest({})).plan;
  for (const PlannedNode& node : plan.nodes)
    EXPECT_EQ(node.keeps_old, node.name == "n2" || node.name == "n3") << node.name;
  inventory.clients[0].kind = ClientKind::kUnknown;
  EXPECT_NE(ProblemOf(inventory, TestRequest({})).find("kernel-1"), std::string::npos);
}

TEST(Planner, PinnedClientsForbidAFlagDay) {
  Inventory inventory = TestInventory(FlagDay(3));
  inventory.clients.push_back({"krbd", {}, ClientKind::kPinned});
  EXPECT_NE(ProblemOf(inventory, TestRequest(FlagDay(3))).find("krbd"), std::string::npos);
}

TEST(Planner, MissingHardwareDomainAndVersionWindow) {
  Inventory inventory = TestInventory({});
  inventory.nodes[1].has_gateway = false;
  EXPECT_EQ(ProblemOf(inventory, TestRequest({})), "n2 has no gateway");
  inventory = TestInventory({});
  inventory.nodes[1].domains.clear();
  EXPECT_EQ(ProblemOf(inventory, TestRequest({.per_domain = "rack"})), "n2 has no domain 'rack'");
  inventory = TestInventory({});
  inventory.nodes[1].gateway_version = "1.3.9";
  EXPECT_EQ(ProblemOf(inventory, TestRequest({})), "");
  inventory.nodes[1].gateway_version = "1.4.0";
  EXPECT_NE(ProblemOf(inventory, TestRequest({})).find("upgrade first"), std::string::npos);
}

TEST(Plan, HashCoversEveryField) {
  const Plan plan = TestPlan({});
  std::string problem;
  const std::string json = PlanJson(plan);
  EXPECT_EQ(HashOf(ReadPlan(json, problem)), HashOf(plan));
  EXPECT_EQ(problem, "");
  std::string edited = json;
  edited.replace(edited.find("\"max_unavailable\": 1"), 20, "\"max_unavailable\": 9");
  (void)ReadPlan(edited, problem);
  EXPECT_NE(problem.find("does not fit its hash"), std::string::npos) << problem;
}

TEST(Plan, ForeignTextIsRefusedInOneLine) {
  const std::string good = PlanJson(TestPlan({}));
  std::string deep(5000, '[');
  for (std::string text :
       {std::string(), std::string("{}"), std::string("[]"), deep, good.substr(0, good.size() / 2),
        "{\"a\":" + deep, std::string("{\"name\":\"\\u0000\"}")}) {
    std::string problem;
    (void)ReadPlan(text, problem);
    EXPECT_NE(problem, "");
    EXPECT_EQ(problem.find('\n'), std::string::npos);
  }
}

TEST(Inventory, IsReadBackAndHashedWithoutTransports) {
  Inventory inventory = TestInventory({});
  inventory.clients.push_back({"c", {"n1"}, ClientKind::kSwitched});
  std::string problem;
  const Inventory read = ReadInventory(InventoryJson(inventory), problem);
  EXPECT_EQ(problem, "");
  EXPECT_EQ(InventoryJson(read), InventoryJson(inventory));
  const std::string hash = HashOf(inventory);
  inventory.nodes[0].transport = Transport::kRnic;
  EXPECT_EQ(HashOf(inventory), hash);
  inventory.nodes[0].domains["rack"] = "r9";
  EXPECT_NE(HashOf(inventory), hash);
}

TEST(Inventory, ProblemsNameTheirPlace) {
  const auto problem_of = [](const char* text) {
    std::string problem;
    (void)ReadInventory(text, problem);
    return problem;
  };
  EXPECT_EQ(problem_of(R"({"cluster":"c","adapter":"a","nodes":[]})"), "no nodes");
  EXPECT_EQ(problem_of(R"({"cluster":"c","adapter":"a","nodes":[{"name":"n"},{"name":"n"}]})"),
            "node n is listed twice");
  EXPECT_EQ(problem_of(R"({"cluster":"c","adapter":"a","nodes":[{"name":"n","transport":"ib"}]})"),
            "nodes[0].transport is not a word that is known here");
  EXPECT_EQ(problem_of(R"({"cluster":"c","adapter":"a","nodes":[{"name":"n","rak":1}]})"),
            "nodes[0].rak is not a field that is known here");
  EXPECT_EQ(
      problem_of(
          R"({"cluster":"c","adapter":"a","nodes":[{"name":"n"}],"clients":[{"name":"x","nodes":["m"]}]})"),
      "client x names node m, which is not listed");
}

}  // namespace
}  // namespace rocegw::migration
