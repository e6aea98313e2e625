// SPDX-License-Identifier: Apache-2.0
// Prometheus's answers, which are foreign input, and the verdicts on gates. The answers were
// recorded from Prometheus 2.42.
#include "controlplane/migrations/gates/prometheus_gates.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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

// A query's answer or that of its left side: (node, value) of each series.
PrometheusAnswer AnswerOf(const std::vector<std::pair<std::string, std::string>>& series) {
  std::string body = R"({"status":"success","data":{"resultType":"vector","result":[)";
  for (size_t i = 0; i < series.size(); ++i) {
    body += i == 0 ? "" : ",";
    body += R"({"metric":{"node":")" + series[i].first + R"("},"value":[1,")" + series[i].second +
            R"("]})";
  }
  PrometheusAnswer answer = ReadPrometheusAnswer(200, body + "]}}");
  EXPECT_EQ(answer.problem, "");
  return answer;
}

// A quantile without observations is not a number, and smaller than nothing.
TEST(GateVerdict, AFalseSeriesThatIsNotANumberDecidesNothing) {
  const PrometheusAnswer answer = AnswerOf({{"n1", "0"}, {"n2", "1"}});
  EXPECT_EQ(Judge("g", answer, AnswerOf({{"n1", "NaN"}, {"n2", "3"}})).text,
            R"(gate g: its left side is not a number {node="n1"})");
  EXPECT_EQ(Judge("g", answer, AnswerOf({{"n1", "9"}, {"n2", "3"}})).outcome, Outcome::kFailed);
}

TEST(GateVerdict, NotANumberHidesNoOtherSeries) {
  const PrometheusAnswer answer = AnswerOf({{"n1", "0"}, {"n2", "0"}, {"n3", "0"}});
  const GateVerdict verdict =
      Judge("g", answer, AnswerOf({{"n1", "NaN"}, {"n2", "9"}, {"n3", "NaN"}}));
  EXPECT_EQ(verdict.outcome, Outcome::kFailed);
  EXPECT_EQ(verdict.text, R"(gate g does not hold {node="n2"})");
  // Labels that differ behind what a verdict shows are different labels.
  const std::string same(300, 'x');
  EXPECT_EQ(
      Judge("g", AnswerOf({{same + "2", "0"}}), AnswerOf({{same + "1", "NaN"}, {same + "2", "9"}}))
          .outcome,
      Outcome::kFailed);
}

// A comparison with "on" drops labels: which series of the left side it was is not known.
TEST(GateVerdict, NotANumberDecidesNothingForLabelsThatTheLeftSideDoesNotHave) {
  EXPECT_EQ(On(kVector, AnswerOf({{"n1", "NaN"}})).outcome, Outcome::kInconclusive);
  EXPECT_EQ(On(kVector, AnswerOf({{"n1", "2"}})).outcome, Outcome::kFailed);
  EXPECT_EQ(On(kVector, ReadPrometheusAnswer(200, kScalar)).outcome, Outcome::kFailed);
}

TEST(GateVerdict, ALongGateLeavesTheLabels) {
  const GateVerdict verdict = Judge(std::string(4000, 'g'), AnswerOf({{"n1", "0"}}), std::nullopt);
  EXPECT_LT(verdict.text.size(), 300U);
  EXPECT_TRUE(verdict.text.ends_with(R"(does not hold {node="n1"})")) << verdict.text;
  EXPECT_LT(Judge("g", AnswerOf({{std::string(5000, 'n'), "0"}}), std::nullopt).text.size(), 300U);
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

// A server that takes connections and never answers.
class SilentServer {
 public:
  SilentServer() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 64), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentServer() { close(fd_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  const std::string& url() const { return url_; }
  // Connections since the last call.
  size_t CountConnections() {
    size_t count = 0;
    for (int fd = accept(fd_, nullptr, nullptr); fd >= 0; fd = accept(fd_, nullptr, nullptr)) {
      close(fd);
      ++count;
    }
    return count;
  }

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  std::string url_;
};

GateVerdict VerdictOnMany(PrometheusSettings settings) {
  PrometheusGates gates(std::move(settings));
  std::promise<GateVerdict> verdict;
  gates.Evaluate(std::vector<std::string>(32, "up == 1"),
                 [&](GateVerdict given) { verdict.set_value(std::move(given)); });
  return verdict.get_future().get();
}

TEST(PrometheusGates, AServerThatDoesNotAnswerIsAskedOnceInARound) {
  SilentServer server;
  PrometheusSettings settings{.url = server.url(), .ca_file = {}, .token_file = {}};
  settings.time_limit = std::chrono::milliseconds(100);
  EXPECT_EQ(VerdictOnMany(settings).outcome, Outcome::kInconclusive);
  EXPECT_EQ(server.CountConnections(), 1U);
}

TEST(PrometheusGates, ARoundHasADeadline) {
  SilentServer server;
  PrometheusSettings settings{.url = server.url(), .ca_file = {}, .token_file = {}};
  settings.time_limit = std::chrono::minutes(10);
  settings.round_limit = std::chrono::milliseconds(100);
  // The test's own time limit is shorter than that of a query.
  EXPECT_EQ(VerdictOnMany(settings).outcome, Outcome::kInconclusive);
  EXPECT_EQ(server.CountConnections(), 1U);
  settings.round_limit = std::chrono::milliseconds(0);
  EXPECT_EQ(VerdictOnMany(settings).text,
            "gate up == 1: Prometheus: no time is left for this gate");
  EXPECT_EQ(server.CountConnections(), 0U);
}

}  // namespace
}  // namespace rocegw::migrations
