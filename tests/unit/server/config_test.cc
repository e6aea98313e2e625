// SPDX-License-Identifier: Apache-2.0
// The controller's configuration file.
#include "controlplane/server/config.h"

#include <gtest/gtest.h>

namespace rocegw::server {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using Lines = std::vector<std::string>;

Lines ProblemsOf(const std::string& yaml) { return ParseConfig(yaml, "f").problems; }

TEST(ControllerConfig, Nothing_IsTheDefault) {
  EXPECT_EQ(ProblemsOf(""), Lines());
  EXPECT_EQ(ParseConfig("", "f").config, Config());
  EXPECT_EQ(Config().AdminSocket(), "/var/lib/rocegw-controller/admin.sock");
}

TEST(ControllerConfig, DefaultText_SaysWhatHoldsWithoutIt) {
  const ConfigResult result = ParseConfig(std::string(DefaultConfigText()), "default");
  EXPECT_EQ(result.problems, Lines());
  EXPECT_EQ(result.config, Config());
}

TEST(ControllerConfig, EveryKey_IsRead) {
  const ConfigResult result = ParseConfig(R"(
state_dir: /s
trust_domain: fleet.example
address: "192.0.2.1:1"
names: [lb.example, 2001:db8::1]
controllers: ["lb.example:7471", "[2001:db8::1]:7471"]
replica_address: 192.0.2.1:7471
admin_socket: /run/a.sock
log_level: debug
metrics: {address: ""}
store:
  backend: etcd
  etcd: {endpoints: ["e1:2379"], root: /x/, ca_file: /ca, certificate_file: /c, key_file: /k}
kubernetes:
  join: true
  agent_account: rocegw/rocegw-agent
  audience: fleet
  join_config_map: rocegw/rocegw-join
  service_account_dir: /token
prometheus: {url: "https://p.example/x", ca_file: /pca, token_file: /ptoken}
donors: {approved_gateways: [host-a, "*"]}
certificates: {node_lifetime: 90s, server_lifetime: 30d}
keep_history: 15m
seal_interval: 5s
)",
                                          "f");
  EXPECT_EQ(result.problems, Lines());
  const Config& config = result.config;
  EXPECT_EQ(config.state_dir, "/s");
  EXPECT_EQ(config.trust_domain, "fleet.example");
  EXPECT_EQ(config.address, "192.0.2.1:1");
  EXPECT_EQ(config.names, (Lines{"lb.example", "2001:db8::1"}));
  EXPECT_EQ(config.controllers, (Lines{"lb.example:7471", "[2001:db8::1]:7471"}));
  EXPECT_EQ(config.replica_address, "192.0.2.1:7471");
  EXPECT_EQ(config.AdminSocket(), "/run/a.sock");
  EXPECT_EQ(config.log_level, process::LogLevel::kDebug);
  EXPECT_EQ(config.metrics_address, "");
  EXPECT_EQ(config.backend, Backend::kEtcd);
  EXPECT_EQ(config.etcd.endpoints, Lines{"e1:2379"});
  EXPECT_EQ(config.etcd.root, "/x/");
  EXPECT_EQ(config.kubernetes, (KubernetesConfig{true, "rocegw/rocegw-agent", "fleet",
                                                 "rocegw/rocegw-join", "/token"}));
  EXPECT_EQ(config.etcd.ca_file, "/ca");
  EXPECT_EQ(config.etcd.certificate_file, "/c");
  EXPECT_EQ(config.etcd.key_file, "/k");
  EXPECT_EQ(config.node_lifetime, seconds(90));
  EXPECT_EQ(config.server_lifetime, hours(24 * 30));
  EXPECT_EQ(config.prometheus, (PrometheusConfig{"https://p.example/x", "/pca", "/ptoken"}));
  EXPECT_EQ(config.donors.approved_gateways, (Lines{"host-a", "*"}));
  EXPECT_EQ(config.keep_history, seconds(900));
  EXPECT_EQ(config.seal_interval, seconds(5));
}

TEST(ControllerConfig, EachMistake_IsNamedWithItsLine) {
  const char* const mistakes[] = {
      "state_dir: relative",
      "trust_domain: UPPER",
      "trust_domain: a123456789012345678901234567890123456789012345678901.example",
      "address: 7471",
      "address: host:7471",
      "address: '[::]:70000'",
      "names: ['no spaces here']",
      "controllers: [lb.example]",
      "replica_address: lb.example",
      "controllers: ['lb.example:0']",
      "admin_socket: relative",
      "log_level: loud",
      "metrics: {address: nowhere}",
      "store: {backend: etcd}",
      "store: {backend: files}",
      "store: {etcd: {endpoints: ['e:1']}}",
      "store: {backend: etcd, etcd: {endpoints: ['e:1'], root: x}}",
      "store: {backend: etcd, etcd: {endpoints: ['e:1'], key_file: /k}}",
      "store: {backend: etcd, etcd: {endpoints: ['e:1'], key_file: /k, certificate_file: /c}}",
      "certificates: {node_lifetime: 0s}",
      "certificates: {node_lifetime: 1 day}",
      "prometheus: {url: \"prometheus:9090\"}",
      "prometheus: {token_file: /t}",
      "prometheus: {url: \"http://p:9090\", token_file: /t}",
      "prometheus: {url: \"http://p:9090\", ca_file: /c}",
      "donors: {approved_gateways: [NO]}",
      "keep_history: 1s",
      "unknown: 1",
      "- list",
      "a: [",
  };
  for (const char* const mistake : mistakes) {
    const Lines problems = ProblemsOf(std::string("\n") + mistake);
    ASSERT_EQ(problems.size(), 1u) << mistake;
    EXPECT_TRUE(problems[0].starts_with("f:")) << problems[0];
  }
  EXPECT_EQ(ProblemsOf("\n\naddress: x"),
            Lines{"f:3: address: 'x' is not ADDRESS:PORT (like 0.0.0.0:7471 or [::]:7471)"});
  const std::string deep = "/" + std::string(100, 'd');
  EXPECT_NE(ProblemsOf("state_dir: " + deep).at(0).find("107 bytes"), std::string::npos);
}

TEST(Duration, IsANumberWithAUnit) {
  const std::pair<const char*, seconds> good[] = {{"0s", seconds(0)},
                                                  {"90s", seconds(90)},
                                                  {"15m", seconds(900)},
                                                  {"2h", hours(2)},
                                                  {"3d", hours(72)}};
  for (const auto& [text, expected] : good) {
    seconds value{-1};
    EXPECT_TRUE(ReadDuration(text, value)) << text;
    EXPECT_EQ(value, expected) << text;
  }
  for (const char* text : {"", "1", "s", "1w", "-1s", "1h30m", "99999999999s", " 1s"}) {
    seconds value{0};
    EXPECT_FALSE(ReadDuration(text, value)) << text;
  }
}

}  // namespace
}  // namespace rocegw::server
