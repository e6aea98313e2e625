// SPDX-License-Identifier: Apache-2.0
// Gates: which texts are one comparison, and the query that tells "false" from "no data".
#include "controlplane/migration/plan/gate.h"

#include <gtest/gtest.h>

#include "tests/support/migration/plans.h"

namespace rocegw::migration {
namespace {

std::string QueryOf(const std::string& text) {
  std::string problem;
  const Gate gate = ReadGate(text, problem);
  return problem.empty() ? gate.query : "problem: " + problem;
}

TEST(Gate, AComparisonGetsTheModifierThatKeepsFalseSeries) {
  EXPECT_EQ(QueryOf("increase(errors_total[10m]) == 0"), "increase(errors_total[10m]) == bool 0");
  EXPECT_EQ(QueryOf("a<b"), "a < bool b");
  EXPECT_EQ(QueryOf("a <= bool b"), "a <= bool b");
  EXPECT_EQ(QueryOf("a <= BOOL b"), "a <= bool b");
  EXPECT_EQ(QueryOf("a >= on(node) group_left b"), "a >= bool on(node) group_left b");
  EXPECT_EQ(QueryOf("boolean_total != boolean_other"), "boolean_total != bool boolean_other");
}

TEST(Gate, TheLeftSideIsAskedForItself) {
  std::string problem;
  EXPECT_EQ(ReadGate(" histogram_quantile(0.99, x) < 0.005", problem).left,
            "histogram_quantile(0.99, x)");
}

TEST(Gate, OnlyWhatStandsOutsideOfParenthesesCounts) {
  EXPECT_EQ(QueryOf(R"(count(up{job="a==b"} == 1) > 2)"), R"(count(up{job="a==b"} == 1) > bool 2)");
  EXPECT_EQ(QueryOf(R"(x{a=~"[<>]\"", b!="c"} < 1)"), R"(x{a=~"[<>]\"", b!="c"} < bool 1)");
  EXPECT_EQ(QueryOf("(a and b) < 1"), "(a and b) < bool 1");
}

TEST(Gate, OtherTextsAreRefused) {
  const std::string more = "problem: it is more than one comparison: make a gate of each";
  EXPECT_EQ(QueryOf("a < 1 and b < 1"), more);
  EXPECT_EQ(QueryOf("a < 1 OR b"), more);
  EXPECT_EQ(QueryOf("a Unless b < 1"), more);
  EXPECT_EQ(QueryOf("a < b < c"), more);
  EXPECT_EQ(QueryOf("up unless down == 1"), more);
  EXPECT_EQ(QueryOf("rate(errors_total[5m])"),
            "problem: it is no comparison, such as rate(errors_total[5m]) < 1");
  EXPECT_EQ(QueryOf(""), "problem: it is no comparison, such as rate(errors_total[5m]) < 1");
  EXPECT_EQ(QueryOf("< 1"), "problem: one side of its comparison is empty");
  EXPECT_EQ(QueryOf("a == Bool"), "problem: one side of its comparison is empty");
  EXPECT_EQ(QueryOf("a == bool"), "problem: one side of its comparison is empty");
  EXPECT_EQ(QueryOf("(a < 1"), "problem: its parentheses do not match");
  EXPECT_EQ(QueryOf("a) < 1"), "problem: its parentheses do not match");
  EXPECT_EQ(QueryOf("a{b=\"c < 1"), "problem: a string does not end");
  EXPECT_EQ(QueryOf("a < 1 # always"), "problem: it has a comment");
  EXPECT_EQ(QueryOf(std::string(5000, 'a') + " < 1"), "problem: it is longer than 4096 bytes");
}

TEST(Gate, APlanWithAGateThatIsNoneIsNotMade) {
  PlanRequest request = TestRequest({});
  request.gates = {"up == 1", "up"};
  const PlanResult result = MakePlan(TestInventory({}), request);
  EXPECT_EQ(result.problems,
            std::vector<std::string>(
                {"gate up: it is no comparison, such as rate(errors_total[5m]) < 1"}));
}

}  // namespace
}  // namespace rocegw::migration
