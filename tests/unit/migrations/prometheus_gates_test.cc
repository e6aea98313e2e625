// SPDX-License-Identifier: Apache-2.0
// Prometheus's answers, which are foreign input, and the verdicts on gates. The answers were
// recorded from Prometheus 2.42.
#include "controlplane/migrations/prometheus_gates.h"

#include <gtest/gtest.h>

#include <future>

namespace rocegw::migrations {
namespace {

using migration::Outcome;

constexpr const char* kVector =
    R"({"status":"success","data":{"resultType":"vector","result":[)"
    R"({"metric":{"__name__":"up","instance":"127.0.0.1:7474","job":"gateway"},"value":[1764301530.5,"1"]},)"
    R"({"metric":{"job":"agent"},"value":[1764301530.5,"0"]}]}})";
constexpr const char* kEmpty = R"({"status":"success","data":{"resultType":"vector","result":[]}})";
constexpr const char* kScalar =
    R"({"status":"success","data":{"resultType":"scalar","result":[1764301530.5,"1"]}})";
constexpr const char* kError =
    R"({"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:4: parse error"})";

GateVerdict On(const char* body, const std::optional<PrometheusAnswer>& left = std::nullopt) {
  return Judge("up == 1", ReadPrometheusAnswer(200, body), left);
}

TEST(PrometheusAnswer, AQueryIsEncoded) {
  EXPECT_EQ(QueryPath("/prom", "a{b=\"c\"}+1 == bool 0"),
            "/prom/api/v1/query?query=a%7Bb%3D%22c%22%7D%2B1%20%3D%3D%20bool%200");
}

TEST(PrometheusAnswer, SamplesHaveLabelsAndValues) {
  const PrometheusAnswer answer = ReadPrometheusAnswer(200, kVector);
  EXPECT_EQ(answer.problem, "");
  ASSERT_EQ(answer.samples.size(), 2U);
  EXPECT_EQ(answer.samples[0].labels, R"({instance="127.0.0.1:7474", job="gateway"})");
  EXPECT_EQ(answer.samples[1].value, 0);
}

TEST(PrometheusAnswer, WhatIsNotUnderstoodHasNoSamples) {
  for (
      const char* body :
      {"", "<html>", "[]", "{}", R"({"status":"success"})",
       R"({"status":"success","data":{"resultType":"matrix","result":[]}})",
       R"({"status":"success","data":{"resultType":"vector","result":{}}})",
       R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1]}]}})",
       R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1x"]}]}})",
       R"({"status":"success","data":{"resultType":"vector","result":[{"metric":[],"value":[1,"1"]}]}})",
       R"({"status":"success","data":{"resultType":"scalar","result":1}})"}) {
    const PrometheusAnswer answer = ReadPrometheusAnswer(200, body);
    EXPECT_NE(answer.problem, "") << body;
    EXPECT_TRUE(answer.samples.empty()) << body;
  }
  EXPECT_EQ(ReadPrometheusAnswer(502, "Bad Gateway").problem,
            "HTTP status 502, and no answer of Prometheus");
}

TEST(GateVerdict, EverySeriesHasToHold) {
  EXPECT_EQ(On(kScalar).outcome, Outcome::kDone);
  const GateVerdict verdict = On(kVector);
  EXPECT_EQ(verdict.outcome, Outcome::kFailed);
  EXPECT_EQ(verdict.text, R"(gate up == 1 does not hold {job="agent"})");
}

TEST(GateVerdict, NoDataAndErrorsDecideNothing) {
  EXPECT_EQ(On(kEmpty).outcome, Outcome::kInconclusive);
  EXPECT_EQ(On(kEmpty).text, "gate up == 1: no data");
  EXPECT_EQ(On(kError).text, "gate up == 1: invalid parameter \"query\": 1:4: parse error");
  EXPECT_EQ(On(kError).outcome, Outcome::kInconclusive);
}

// A quantile without observations is not a number, and smaller than nothing.
TEST(GateVerdict, NotANumberDecidesNothing) {
  const PrometheusAnswer nothing = ReadPrometheusAnswer(
      200,
      R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"node":"n1"},"value":[1,"NaN"]}]}})");
  EXPECT_EQ(On(kVector, nothing).outcome, Outcome::kInconclusive);
  EXPECT_EQ(On(kVector, ReadPrometheusAnswer(200, kScalar)).outcome, Outcome::kFailed);
}

GateVerdict VerdictOf(PrometheusGates& gates, const std::string& gate) {
  std::promise<GateVerdict> verdict;
  gates.Evaluate({gate}, [&](GateVerdict given) { verdict.set_value(std::move(given)); });
  return verdict.get_future().get();
}

TEST(PrometheusGates, WithoutAServerNothingIsDecided) {
  PrometheusGates none({});
  EXPECT_FALSE(none.IsConfigured());
  EXPECT_EQ(VerdictOf(none, "up == 1").outcome, Outcome::kInconclusive);
  // Port 1 has no listener.
  PrometheusGates away({.url = "http://127.0.0.1:1", .ca_file = {}, .token_file = {}});
  const GateVerdict verdict = VerdictOf(away, "up == 1");
  EXPECT_EQ(verdict.outcome, Outcome::kInconclusive);
  EXPECT_EQ(verdict.text, "gate up == 1: Prometheus: Connection refused");
}

TEST(PrometheusGates, ATokenFileThatIsNotThereIsNamed) {
  PrometheusGates gates(
      {.url = "http://127.0.0.1:1", .ca_file = {}, .token_file = "/nowhere/token"});
  EXPECT_EQ(VerdictOf(gates, "up == 1").text, "gate up == 1: /nowhere/token holds no token");
}

}  // namespace
}  // namespace rocegw::migrations
