// SPDX-License-Identifier: Apache-2.0
// The metrics page over HTTP: parsed line by line, and checked by promtool.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "gateway/process/http/metrics_server.h"
#include "gateway/service/gateway_metrics.h"
#include "gateway/session/fleet_peers.h"
#include "gateway/tenant/registry.h"
#include "tests/unit/service/fake_source.h"

namespace rocegw::service {
namespace {

struct Answer {
  int code = 0;
  std::string body;
};

Answer Get(int port, const std::string& path, const char* method = "GET") {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string request = std::string(method) + " " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(fd);
  Answer answer;
  std::sscanf(text.c_str(), "HTTP/1.1 %d", &answer.code);
  const size_t body = text.find("\r\n\r\n");
  if (body != std::string::npos) answer.body = text.substr(body + 4);
  return answer;
}

class MetricsTest : public testing::Test {
 protected:
  void SetUp() override {
    source_.state = TestState();
    readiness_.SetReady();
    const Status status = server_.Start("127.0.0.1:0");
    ASSERT_TRUE(status.ok()) << status.text();
  }
  std::map<std::string, std::string> Samples() const {
    std::istringstream lines(Get(server_.port(), "/metrics").body);
    std::map<std::string, std::string> samples;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('#')) continue;
      const size_t blank = line.rfind(' ');
      EXPECT_TRUE(samples.emplace(line.substr(0, blank), line.substr(blank + 1)).second) << line;
    }
    return samples;
  }

  GatewayIdentity identity_ = TestIdentity();
  Readiness readiness_;
  FakeSource source_;
  GatewayMetrics metrics_{identity_, readiness_, source_};
  process::MetricsServer server_{metrics_, readiness_};
};

TEST_F(MetricsTest, SetUp_OfPoolsThatHaveAny) {
  const auto samples = Samples();
  const std::string pool = "pool=\"p1\",tenant=\"red\"";
  EXPECT_EQ(samples.at("rocegw_pool_ready_qps{" + pool + "}"), "15");
  EXPECT_EQ(samples.at("rocegw_pool_ready_bytes{" + pool + "}"), "4194304");
  EXPECT_EQ(samples.at("rocegw_pool_ready_hits_total{" + pool + "}"), "30");
  EXPECT_EQ(samples.at("rocegw_pool_ready_misses_total{" + pool + "}"), "2");
  const auto bucket = [&](const std::string& bound) {
    return samples.at("rocegw_pool_set_up_seconds_bucket{" + pool + ",le=\"" + bound + "\"}");
  };
  EXPECT_EQ(bucket("5e-06"), "0");
  EXPECT_EQ(bucket("1e-05"), "2");
  EXPECT_EQ(bucket("0.5"), "2");
  EXPECT_EQ(bucket("+Inf"), "3");
  EXPECT_EQ(samples.at("rocegw_pool_set_up_seconds_count{" + pool + "}"), "3");
  EXPECT_EQ(samples.at("rocegw_worker_channels{worker=\"1\"}"), "4");
  EXPECT_EQ(samples.at("rocegw_pool_operation_seconds_count{" + pool + "}"), "1");
  EXPECT_EQ(samples.at("rocegw_pool_operation_seconds_bucket{" + pool + ",le=\"2e-05\"}"), "1");
  EXPECT_EQ(samples.at("rocegw_pool_operation_seconds_bucket{" + pool + ",le=\"1e-05\"}"), "0");
  EXPECT_EQ(samples.at("rocegw_discovery_questions_total{outcome=\"silent\"}"), "4");
  EXPECT_EQ(samples.at("rocegw_discovery_answers_total{sent=\"no\"}"), "6");
  EXPECT_EQ(samples.at("rocegw_discovery_peers{kind=\"gateway\"}"), "8");
  EXPECT_FALSE(samples.contains("rocegw_pool_ready_qps{pool=\"p2\",tenant=\"red\"}"));
}

TEST_F(MetricsTest, Page_HasEveryCounterOfEveryWorker) {
  const auto samples = Samples();
  size_t index = 0;
  for (const metrics::CounterInfo& info : metrics::AllCounters()) {
    for (const size_t worker : {size_t{0}, size_t{1}}) {
      const std::string name = "rocegw_" + metrics::CounterName(info) + "_total{worker=\"" +
                               std::to_string(worker) + "\"}";
      ASSERT_TRUE(samples.contains(name)) << name;
      const size_t expected = index < 4 ? 100 * worker + index : 0;
      EXPECT_EQ(samples.at(name), std::to_string(expected)) << name;
    }
    ++index;
  }
}

// The page is readable by all: it must not help a guess of numbers and epochs.
TEST_F(MetricsTest, Page_DoesNotTellHowFarAGuessHasCome) {
  const auto samples = Samples();
  for (const char* reason :
       {"unknown_qpn", "wrong_address", "sequence_gap", "unknown_channel", "channel_epoch",
        "channel_state", "channel_window", "wrong_tenant", "cm_state"}) {
    for (const auto& [name, value] : samples)
      EXPECT_EQ(name.find("reason=\"" + std::string(reason) + "\""), std::string::npos) << name;
  }
  EXPECT_TRUE(
      samples.contains(R"(rocegw_drops_total{reason="unexpected",side="peer",worker="0"})"));
}

TEST_F(MetricsTest, Page_HasDropsGaugesAndBuild) {
  const auto samples = Samples();
  const auto value = [&](const std::string& name) {
    return samples.contains(name) ? samples.at(name) : "missing";
  };
  EXPECT_EQ(value(R"(rocegw_drops_total{reason="bad_icrc",side="peer",worker="1"})"), "8");
  EXPECT_EQ(value(R"(rocegw_drops_total{reason="no_buffer",side="local",worker="0"})"), "0");
  EXPECT_EQ(value(R"(rocegw_drops_total{reason="cm_unmatched",side="peer",worker="control"})"),
            "2");
  EXPECT_EQ(value(R"(rocegw_port_tx_packets_total{port="port0",worker="1"})"), "11");
  EXPECT_EQ(value(R"(rocegw_port_tx_lost_total{port="port0",worker="0"})"), "0");
  EXPECT_EQ(value("rocegw_sessions"), "1");
  EXPECT_EQ(value("rocegw_queue_pairs"), "2");
  EXPECT_EQ(value("rocegw_memory_regions"), "2");
  EXPECT_EQ(value("rocegw_registered_bytes"), "12582912");
  EXPECT_EQ(value(R"(rocegw_port_up{device="rocegw0",mode="udp",port="port0"})"), "1");
  EXPECT_EQ(value(R"(rocegw_build_info{compiler="gcc 12",revision="abc123",version="0.1.0"})"),
            "1");
  EXPECT_EQ(value("rocegw_ready"), "1");
  EXPECT_EQ(value("process_start_time_seconds"), "1790000000");
  EXPECT_GT(std::stod(value("process_open_fds")), 0);
  EXPECT_GT(std::stod(value("process_resident_memory_bytes")), 0);
}

TEST_F(MetricsTest, Page_HasLimitsByPool) {
  const auto samples = Samples();
  const auto value = [&](const std::string& name) {
    return samples.contains(name) ? samples.at(name) : "missing";
  };
  EXPECT_EQ(value(R"(rocegw_pool_used{limit="qps",pool="p1",tenant="red"})"), "11");
  EXPECT_EQ(value(R"(rocegw_pool_used{limit="qps",pool="p2",tenant="red"})"), "12");
  EXPECT_EQ(value(R"(rocegw_pool_committed{limit="qps",pool="p1",tenant="red"})"), "5");
  EXPECT_EQ(value(R"(rocegw_pool_peak{limit="qps",pool="p1",tenant="red"})"), "20");
  EXPECT_EQ(value(R"(rocegw_pool_refused_total{limit="qps",pool="p1",tenant="red"})"), "3");
  EXPECT_EQ(
      value(R"(rocegw_pool_refused_total{limit="connects_per_second",pool="p1",tenant="red"})"),
      "4");
  EXPECT_EQ(value(R"(rocegw_pool_used{limit="connects_per_second",pool="p1",tenant="red"})"),
            "missing");
}

// A leaving pool with sessions and its successor have one name: one series, not two.
TEST_F(MetricsTest, Page_PoolsOfOneNameAreOneSeries) {
  session::PoolRow leaving = source_.state.pools[0];
  leaving.leaving = true;
  source_.state.pools.push_back(leaving);
  source_.state.pools[0].sent_bytes = 5;
  source_.state.pools.back().sent_bytes = 7;
  source_.state.pools.back().sent_packets = 3;
  source_.state.pools[0].attaches = {4, 0, 1};
  source_.state.pools.back().attaches = {2, 3, 0};
  const auto samples = Samples();
  EXPECT_EQ(samples.at(R"(rocegw_pool_used{limit="qps",pool="p1",tenant="red"})"), "22");
  EXPECT_EQ(samples.at(R"(rocegw_pool_sent_bytes_total{pool="p1",tenant="red"})"), "12");
  EXPECT_EQ(samples.at(R"(rocegw_pool_sent_packets_total{pool="p1",tenant="red"})"), "3");
  for (const auto& [outcome, count] :
       {std::pair{"accepted", "6"}, {"refused", "3"}, {"failed", "1"}}) {
    EXPECT_EQ(samples.at("rocegw_pool_attaches_total{outcome=\"" + std::string(outcome) +
                         "\",pool=\"p1\",tenant=\"red\"}"),
              count);
  }
}

// Fifty pools with all limits: at most 150 series each, besides those of the gateway itself.
TEST_F(MetricsTest, Page_ManyPoolsStayWithinTheBudget) {
  const size_t base = Samples().size();
  source_.state.pools.clear();
  for (int i = 0; i < 50; ++i) {
    session::PoolRow& pool = source_.state.pools.emplace_back();
    pool.name = "tenants/t" + std::to_string(i) + "/pools/p";
    for (size_t limit = 0; limit < tenant::kLimits; ++limit)
      pool.limits.push_back({std::string(tenant::LimitName(limit)), 1, 1, 1, 1});
  }
  EXPECT_LE(Samples().size(), base + 50 * 150);
  EXPECT_LT(base, 3000u);
}

// The maximum number of peers with their own label, and all others.
TEST_F(MetricsTest, Page_PeersStayWithinTheBudget) {
  source_.state.peers.clear();
  const size_t base = Samples().size();
  for (size_t i = 0; i < session::FleetPeers::kMostLabels; ++i)
    source_.state.peers["host-" + std::to_string(i)].channels = 1;
  source_.state.peers["other"].channels = 1;
  EXPECT_LE(Samples().size(), base + 65 * 5);
  EXPECT_LT(Samples().size(), 3000u);
}

TEST_F(MetricsTest, Page_PeersByTheirNamesInTheFleet) {
  session::PeerRow& peer = source_.state.peers["host-b"];
  peer = {.channels = 2,
          .in_flight_bytes = 4096,
          .arrived_bytes = 70000,
          .resent_packets = 3,
          .rtts = Microseconds(60),
          .channels_rtt = 2};
  source_.state.peers["other"] = {};
  source_.state.discovery.members_answering = 3;
  source_.state.discovery.members_mute = 1;
  const auto samples = Samples();
  EXPECT_EQ(samples.at(R"(rocegw_peer_channels{peer="host-b"})"), "2");
  EXPECT_EQ(samples.at(R"(rocegw_peer_in_flight_bytes{peer="host-b"})"), "4096");
  EXPECT_EQ(samples.at(R"(rocegw_peer_arrived_bytes_total{peer="host-b"})"), "70000");
  EXPECT_EQ(samples.at(R"(rocegw_peer_resent_packets_total{peer="host-b"})"), "3");
  EXPECT_EQ(samples.at(R"(rocegw_peer_rtt_seconds{peer="host-b"})"), "3e-05");
  EXPECT_EQ(samples.at(R"(rocegw_peer_rtt_seconds{peer="other"})"), "0");
  EXPECT_EQ(samples.at(R"(rocegw_fleet_peer_addresses{answers="yes"})"), "3");
  EXPECT_EQ(samples.at(R"(rocegw_fleet_peer_addresses{answers="no"})"), "1");
}

// A hanging worker does not answer about peers.
TEST_F(MetricsTest, Page_WithoutAnswersOfWorkers_HasTheRest) {
  source_.answers_about_peers = false;
  source_.state.workers[1].silent = Milliseconds(400);
  source_.state.workers[1].engine_minimum = 2048;
  const auto samples = Samples();
  EXPECT_TRUE(samples.contains("rocegw_sessions"));
  EXPECT_EQ(samples.at("rocegw_worker_silent_seconds{worker=\"0\"}"), "0");
  EXPECT_EQ(samples.at("rocegw_worker_silent_seconds{worker=\"1\"}"), "0.4");
  EXPECT_EQ(samples.at("rocegw_worker_copy_engine_minimum_bytes{worker=\"0\"}"), "0");
  EXPECT_EQ(samples.at("rocegw_worker_copy_engine_minimum_bytes{worker=\"1\"}"), "2048");
}

TEST_F(MetricsTest, Page_LabelsAreBounded) {
  // A daemon with two workers stays far below the budget of 2,000 series, and no label is a QP or
  // an address.
  const auto samples = Samples();
  EXPECT_LT(samples.size(), 500u);
  const std::set<std::string> allowed = {
      "worker", "reason", "side",  "device", "mode", "port", "compiler", "version", "revision",
      "tenant", "pool",   "limit", "le",     "sent", "kind", "outcome",  "peer",    "answers"};
  for (const auto& [name, unused] : samples) {
    const size_t open = name.find('{');
    if (open == std::string::npos) continue;
    std::istringstream labels(name.substr(open + 1));
    for (std::string label; std::getline(labels, label, ',');) {
      EXPECT_TRUE(allowed.contains(label.substr(0, label.find('=')))) << name;
    }
  }
}

TEST_F(MetricsTest, Page_SatisfiesPromtool) {
  const TestDirectory directory;
  const Answer answer = Get(server_.port(), "/metrics");
  EXPECT_EQ(answer.code, 200);
  std::ofstream(directory.File("page")) << answer.body;
  FILE* tool = popen(("promtool check metrics <" + directory.File("page") + " 2>&1").c_str(), "r");
  ASSERT_NE(tool, nullptr);
  std::string said;
  char buffer[1024];
  while (std::fgets(buffer, sizeof buffer, tool) != nullptr) said += buffer;
  EXPECT_EQ(pclose(tool), 0) << "Debian package prometheus has promtool; it said:\n" << said;
  EXPECT_EQ(said, "");
}

TEST_F(MetricsTest, Probes_FollowReadinessAndControlThread) {
  EXPECT_EQ(Get(server_.port(), "/livez").code, 200);
  EXPECT_EQ(Get(server_.port(), "/readyz").code, 200);
  EXPECT_EQ(Get(server_.port(), "/readyz", "HEAD").body, "");
  readiness_.SetNotReady("draining");
  EXPECT_EQ(Get(server_.port(), "/readyz").code, 503);
  EXPECT_EQ(Get(server_.port(), "/readyz").body, "draining\n");
  EXPECT_EQ(Get(server_.port(), "/livez").code, 200);
  source_.answers = false;
  EXPECT_EQ(Get(server_.port(), "/livez").code, 503);
  EXPECT_EQ(Get(server_.port(), "/metrics").code, 503);
  source_.AnswerAll();  // too late, and harmless
  EXPECT_EQ(Get(server_.port(), "/etc/passwd").code, 404);
  EXPECT_EQ(Get(server_.port(), "/").body, "there are /metrics, /livez and /readyz\n");
}

TEST_F(MetricsTest, SecondServer_OnTheSamePort_SaysRemedy) {
  process::MetricsServer second(metrics_, readiness_);
  const std::string address = "127.0.0.1:" + std::to_string(server_.port());
  EXPECT_EQ(second.Start(address).text(),
            "metrics: cannot listen on " + address + "; this process (socket of user " +
                std::to_string(geteuid()) +
                ") has the port: stop it, set metrics.address, or \"\" for none");
}

// A local user can take the port while no daemon runs.
TEST_F(MetricsTest, PortOfAnotherProcess_IsNamed) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof any;
    auto* const name = reinterpret_cast<sockaddr*>(&any);
    const bool bound =
        bind(fd, name, length) == 0 && listen(fd, 1) == 0 && getsockname(fd, name, &length) == 0;
    const uint16_t port = ntohs(any.sin_port);
    if (!bound || write(ends[1], &port, sizeof port) < 0) _exit(1);
    for (;;) pause();
  }
  uint16_t port = 0;
  EXPECT_EQ(read(ends[0], &port, sizeof port), ssize_t{sizeof port});
  process::MetricsServer second(metrics_, readiness_);
  const std::string text = second.Start("127.0.0.1:" + std::to_string(port)).text();
  const std::string user = std::to_string(geteuid());
  EXPECT_NE(text.find("process " + std::to_string(child) + " ("), std::string::npos) << text;
  EXPECT_NE(text.find(" of user " + user + " has the port: stop it, set metrics.address"),
            std::string::npos)
      << text;
  close(ends[0]);
  close(ends[1]);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace rocegw::service
