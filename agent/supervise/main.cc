// SPDX-License-Identifier: Apache-2.0
// rocegw-agent: keeps the gateway of its host in the state that the fleet's controller wants. This
// file reads the command line, handles signals, and turns errors into one line and an exit status;
// the agent itself is agent.cc.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>

#include "agent/expose/attach_rules.h"
#include "agent/expose/attach_verdicts.h"
#include "agent/kube/kubernetes.h"
#include "agent/node/node_identity.h"
#include "agent/reconcile/gateway_client.h"
#include "agent/supervise/agent.h"
#include "agent/supervise/agent_metrics.h"
#include "agent/supervise/config.h"
#include "agent/supervise/file_change.h"
#include "controlplane/kubeapi/api_server.h"
#include "controlplane/model/resource_name.h"
#include "gateway/base/service_advice.h"
#include "gateway/disk/durable_file.h"
#include "gateway/process/build_info.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/grpc/grpc_log.h"
#include "gateway/process/http/metrics_server.h"
#include "gateway/process/log/logging.h"
#include "gateway/process/output.h"
#include "gateway/process/sd_notify.h"
#include "gateway/process/startup.h"
#include "gateway/process/watchdog.h"

namespace rocegw::agent {
namespace {

using process::kEnvironment;
using process::kInternal;
using process::kOk;
using process::kUsage;
using process::LogLevel;

constexpr const char* kDefaultConfigFile = "/etc/rocegw/rocegw-agent.yaml";
constexpr int kGoOn = -1;

struct Arguments {
  std::string config_file;  // empty: none
  std::string state_dir;    // empty: from the configuration
  std::string join;         // file, or "-"; empty: does not join
  std::string pod_token;    // file; empty: the join file has a token
  std::string same_fleet;
  bool leave = false;
  std::string name;  // overrides the configuration
  std::optional<LogLevel> log_level;
  bool check_config = false;
  bool print_default_config = false;
};

// Returns kGoOn, or the exit status.
int ParseArguments(int argc, char** argv, Arguments& arguments) {
  CLI::App app(
      "Keeps the RDMA gateway of this host as the fleet's controller wants it. A host joins once,\n"
      "with the file that 'rocegw-controller join-token' prints, and then runs without options.\n"
      "The gateway goes on while the agent is away, and gets the last good configuration from\n"
      "it while the controller is.");
  app.footer(
      "Signals: SIGTERM, SIGINT: it stops; the gateway does not. SIGHUP: log_level and\n"
      "attach_rules are read again, the latter also when the file has changed.\n"
      "\n"
      "Files:\n"
      "  /etc/rocegw/rocegw-agent.yaml   the configuration, if it is there\n"
      "  /var/lib/rocegw-agent           state_dir: key and certificate of this host, addresses\n"
      "                                  and authority of the controller, last-good.pb\n"
      "  /run/rocegw/grpc.sock           the gateway (gateway_socket)\n"
      "\n"
      "Environment: NOTIFY_SOCKET, JOURNAL_STREAM as systemd sets them.\n"
      "\n"
      "Exit status: 0 joined or stopped as asked, 2 wrong usage or configuration, 3 the machine\n"
      "lacks something or the controller refused, 70 a bug.\n"
      "\n"
      "Examples:\n"
      "  rocegw-controller join-token | ssh HOST rocegw-agent --join -\n"
      "  rocegw-agent --join join.yaml --name host-a\n"
      "  rocegwctl status                                what the controller sees of it");
  std::string log_level;
  app.add_option("--config", arguments.config_file,
                 std::string("configuration (YAML); default: ") + kDefaultConfigFile +
                     " where that exists, else built-in values")
      ->type_name("FILE");
  app.add_option("--join", arguments.join,
                 "join the fleet with this file (-: standard input) and leave")
      ->type_name("FILE");
  app.add_option("--pod-token", arguments.pod_token,
                 "join by the token of this pod's service account in this file, where the\n"
                 "controller admits that (kubernetes.join) and the join file has no token")
      ->type_name("FILE")
      ->needs("--join");
  app.add_option("--same-fleet", arguments.same_fleet,
                 "whether this host is of the fleet of this join file (-: standard input); leaves "
                 "with 3 if not")
      ->type_name("FILE");
  app.add_flag("--leave", arguments.leave,
               "forget the fleet, so that the host can join another one, and leave");
  app.add_option("--name", arguments.name,
                 "name in the fleet, when joining; default: the file's, else the host name")
      ->type_name("NAME");
  app.add_option("--state-dir", arguments.state_dir, "over the file's state_dir")->type_name("DIR");
  app.add_option("--log-level", log_level, "trace, debug, info, warn or error; over the file's")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}).description(""));
  app.add_flag("--check-config", arguments.check_config, "check the configuration and leave");
  app.add_flag("--print-default-config", arguments.print_default_config,
               "print every key with its default and meaning, and leave");
  app.set_version_flag("--version", "rocegw-agent " + process::VersionText());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  arguments.log_level = process::LogLevelFromName(log_level);
  if (arguments.config_file.empty() && std::filesystem::exists(kDefaultConfigFile))
    arguments.config_file = kDefaultConfigFile;
  return kGoOn;
}

ConfigResult Load(const Arguments& arguments) {
  ConfigResult result;
  if (!arguments.config_file.empty()) result = ReadConfig(arguments.config_file);
  if (!arguments.state_dir.empty())
    result.config.state_dir = std::filesystem::absolute(arguments.state_dir).lexically_normal();
  if (!arguments.name.empty()) result.config.name = arguments.name;
  return result;
}

int Fail(const Status& status) {
  std::cerr << "rocegw-agent: " << status.text() << "\n";
  return status.error() == EINVAL ? kUsage : kEnvironment;
}

// Returns the first label of the host name, as a DNS label.
std::string HostLabel() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return {};
  std::string label;
  for (const char c : std::string(name)) {
    if (c == '.') break;
    label += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return label;
}

StatusOr<std::string> ReadJoinText(const std::string& file) {
  if (file != "-") return ReadSmallFile(file);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

// `pod_token`: file with the token of this pod's service account; empty: none.
StatusOr<NodeIdentity> Join(const Config& config, const std::string& file_name,
                            const std::string& pod_token) {
  auto text = ReadJoinText(file_name);
  if (!text.ok()) return text.status();
  auto file = identity::ReadJoinFile(*text);
  if (!file.ok()) return Status(EINVAL, file_name + ": " + file.status().text());
  std::string gateway = file->gateway;
  if (!config.name.empty()) {
    if (!gateway.empty() && gateway != "gateways/" + config.name) {
      return Status(EINVAL, file_name + " is for " + gateway + ", not for gateways/" + config.name);
    }
    gateway = "gateways/" + config.name;
  }
  if (gateway.empty()) gateway = "gateways/" + HostLabel();
  if (!model::ParseResourceName(gateway).has_value()) {
    return Status(EINVAL, "'" + gateway + "' is no name for a gateway; give one with --name");
  }
  std::error_code error;
  std::filesystem::create_directories(config.state_dir, error);
  if (error) return Status(error.value(), config.state_dir + ": " + error.message());
  std::filesystem::permissions(config.state_dir, std::filesystem::perms::owner_all, error);
  std::string token;
  if (!pod_token.empty()) {
    auto read = ReadSmallFile(pod_token);
    if (!read.ok()) return read.status();
    token = std::move(*read);
    std::erase_if(token, [](unsigned char c) { return c <= ' '; });
  }
  return NodeIdentity::Join(config.state_dir, *file, gateway, token);
}

Status CompareFleet(const Config& config, const std::string& file_name) {
  auto text = ReadJoinText(file_name);
  if (!text.ok()) return text.status();
  auto file = identity::ReadJoinFile(*text);
  if (!file.ok()) return {EINVAL, file_name + ": " + file.status().text()};
  auto identity = NodeIdentity::Load(config.state_dir);
  return identity.ok() ? identity->IsOfFleet(*file) : identity.status();
}

// Returns the directory of the programs installed with this one.
std::string OwnFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

// Applies settings that may change while the agent runs. A file with problems changes nothing.
void Reload(const Arguments& arguments, RuleVerdicts& rules) {
  ConfigResult fresh = Load(arguments);
  process::ReloadLogLevel(fresh.problems, arguments.log_level.value_or(fresh.config.log_level));
  if (!fresh.problems.empty()) return;
  const size_t count = fresh.config.attach_rules.size();
  if (rules.Replace(std::move(fresh.config.attach_rules)))
    spdlog::info("attach_rules are read again: {}", count);
}

void OnSignal(int fd, const Arguments& arguments, RuleVerdicts& rules, ControlLoop& loop) {
  signalfd_siginfo info;
  while (read(fd, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGHUP) {
      Reload(arguments, rules);
    } else {
      spdlog::info("stopping: {}", strsignal(static_cast<int>(info.ssi_signo)));
      loop.Stop();
    }
  }
}

int Serve(const Arguments& arguments, const Config& config) {
  process::RaiseDescriptorLimit();
  auto signals = process::BlockSignals();
  if (!signals.ok()) return Fail(signals.status());
  auto identity = NodeIdentity::Load(config.state_dir);
  if (!identity.ok() && identity.status().error() == ENOENT && !config.join_file.empty())
    identity = Join(config, config.join_file, {});
  if (!identity.ok() && identity.status().error() == ENOENT) {
    return Fail(Status(ENOENT, "this host has not joined a fleet (" + config.state_dir +
                                   " holds no identity): rocegw-controller join-token prints a "
                                   "file for rocegw-agent --join FILE"));
  }
  if (!identity.ok()) return Fail(identity.status());
  ControlLoop loop;
  if (Status status = loop.Open(); !status.ok()) return Fail(status);
  const process::ServiceManager manager = process::ServiceManager::FromEnvironment();
  GatewayClient gateway(loop, config.gateway_socket);
  Agent agent(loop, *identity, gateway,
              {.version = process::VersionText(),
               .state_file = config.state_dir + "/last-good.pb",
               .fleet_keys_file = config.fleet_keys_file,
               .donors_dir = config.donors_dir,
               .program_folder = OwnFolder(),
               .adapters = {.adapters_dir = config.adapters_dir, .state_dir = config.state_dir}});
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  RuleVerdicts rules(config.attach_rules);
  const DevicePluginCounters no_kubelet;
  std::optional<kubeapi::ApiServer> api;
  if (config.kubernetes.enabled && config.kubernetes.api_server) {
    auto settings = kubeapi::InCluster(config.kubernetes.service_account_dir);
    if (!settings.ok()) return Fail(settings.status());
    api.emplace(std::move(*settings));
  }
  std::optional<Kubernetes> kubernetes;
  if (config.kubernetes.enabled) {
    KubernetesSettings settings = config.kubernetes;
    // From the downward API: it differs from pod to pod, which a configuration for all nodes cannot
    // express.
    if (const char* const uid = std::getenv("ROCEGW_POD_UID")) settings.own_pod_uid = uid;
    if (const char* const node = std::getenv("ROCEGW_NODE_NAME")) settings.dra.node = node;
    if (settings.dra.enabled && settings.dra.node.empty())
      return Fail(Status(EINVAL, "kubernetes.dra needs the environment variable ROCEGW_NODE_NAME"));
    settings.dra.checkpoint = config.state_dir + "/prepared-claims.json";
    kubernetes.emplace(loop, gateway, rules, api ? &*api : nullptr, settings);
  }
  VerdictSource& source = kubernetes ? kubernetes->verdicts() : rules;
  const AttachVerdicts verdicts(loop, gateway, source);
  const AgentMetrics metrics(agent.counters(), verdicts.counters(),
                             kubernetes ? kubernetes->counters() : no_kubelet,
                             kubernetes ? kubernetes->claim_counters() : nullptr,
                             std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  process::Readiness readiness;
  process::Watchdog watchdog;
  watchdog.Watch("the control loop", loop.heartbeat());
  process::MetricsServer server(metrics, readiness, &watchdog);
  if (!config.metrics_address.empty()) {
    if (Status status = server.Start(config.metrics_address); !status.ok()) return Fail(status);
  }
  const auto watch = loop.Watch(
      signals->get(), EPOLLIN, [&](uint32_t) { OnSignal(signals->get(), arguments, rules, loop); });
  if (watch == 0) return Fail(Status(errno, "cannot watch signals"));
  const FileChange change(loop, arguments.config_file, [&] { Reload(arguments, rules); });
  // Ready without a controller: the agent never waits for it.
  watchdog.Start();
  readiness.SetReady();
  manager.Ready("agent of " + identity->gateway());
  spdlog::info("rocegw-agent {} is ready: {}, gateway at {}", process::VersionText(),
               identity->gateway(), config.gateway_socket);
  loop.Run();
  if (!agent.wants_to_start_anew()) manager.Stopping("stopping");
  watchdog.Stop();
  server.Stop();
  if (agent.wants_to_start_anew()) return identity::kStartAnew;
  return kOk;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (const int code = ParseArguments(argc, argv, arguments); code != kGoOn) return code;
  if (arguments.print_default_config) {
    std::cout << DefaultConfigText();
    return kOk;
  }
  const ConfigResult loaded = Load(arguments);
  for (const std::string& problem : loaded.problems)
    std::cerr << "rocegw-agent: " << problem << "\n";
  if (!loaded.problems.empty()) return kUsage;
  if (arguments.check_config) {
    std::cout << (arguments.config_file.empty() ? "built-in configuration" : arguments.config_file)
              << ": good\n";
    return kOk;
  }
  if (arguments.leave) {
    const Status left = NodeIdentity::Leave(loaded.config.state_dir);
    if (!left.ok()) return Fail(left);
    std::cout << "this host is of no fleet any more; a running agent goes on until it is stopped\n";
    return kOk;
  }
  if (!arguments.same_fleet.empty()) {
    const Status same = CompareFleet(loaded.config, arguments.same_fleet);
    return same.ok() ? kOk : Fail(same);
  }
  if (!arguments.join.empty()) {
    const auto joined = Join(loaded.config, arguments.join, arguments.pod_token);
    if (!joined.ok()) return Fail(joined.status());
    std::cout << "joined as " << joined.value().gateway()
              << (RunsInPod() ? "; the agent starts now\n" : "; now start rocegw-agent\n");
    return kOk;
  }
  process::StartLogging("rocegw-agent", arguments.log_level.value_or(loaded.config.log_level));
  process::RouteGrpcLog();
  return Serve(arguments, loaded.config);
}

}  // namespace
}  // namespace rocegw::agent

int main(int argc, char** argv) {
  try {
    const int code = rocegw::agent::Main(argc, argv);
    if (code == rocegw::identity::kStartAnew) {
      execv("/proc/self/exe", argv);
      return rocegw::process::kInternal;
    }
    return rocegw::process::FinishOutput("rocegw-agent", code, rocegw::process::kEnvironment);
  } catch (const std::exception& error) {
    std::cerr << "rocegw-agent: internal error: " << error.what() << "\n";
    return rocegw::process::kInternal;
  }
}
