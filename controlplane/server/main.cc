// SPDX-License-Identifier: Apache-2.0
// rocegw-controller: the fleet's control plane. This file reads the command line, handles signals,
// and turns errors into one line and an exit status; the controller itself is controller.cc.
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "controlplane/identity/clock_watch.h"
#include "controlplane/server/config.h"
#include "controlplane/server/controller.h"
#include "controlplane/server/user_certificate.h"
#include "gateway/process/build_info.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/grpc/grpc_log.h"
#include "gateway/process/log/logging.h"
#include "gateway/process/output.h"
#include "gateway/process/sd_notify.h"
#include "gateway/process/startup.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"

namespace rocegw::server {
namespace {

using process::kEnvironment;
using process::kInternal;
using process::kOk;
using process::kUsage;
using process::LogLevel;

constexpr const char* kDefaultConfigFile = "/etc/rocegw/rocegw-controller.yaml";
constexpr std::chrono::seconds kStopsWithin(20);
constexpr std::chrono::seconds kCallTime(30);
constexpr int kGoOn = -1;

struct Arguments {
  std::string config_file;  // empty: none
  std::string state_dir;    // empty: from the configuration
  std::optional<LogLevel> log_level;
  bool check_config = false;
  bool print_default_config = false;
  bool join_token = false;
  std::string gateway;
  std::string lifetime;
  bool user_certificate = false;
  std::string user;
  std::string directory = ".";
};

std::string CheckDuration(const std::string& text) {
  std::chrono::seconds ignored{0};
  return ReadDuration(text, ignored) ? "" : "'" + text + "' is not a duration (90s, 15m, 24h, 30d)";
}

void AddCommands(CLI::App& app, Arguments& arguments) {
  app.require_subcommand(0, 1);
  CLI::App& join = *app.add_subcommand(
      "join-token",
      "print a file with which one host joins the fleet, once; asks the running controller");
  join.add_option("--gateway", arguments.gateway,
                  "only for a host of this name; needed for a name that has joined before")
      ->type_name("NAME");
  join.add_option("--lifetime", arguments.lifetime, "until when it is good; default 1h, at most 1d")
      ->type_name("TIME")
      ->check(CheckDuration);
  join.callback([&arguments] { arguments.join_token = true; });
  CLI::App& user = *app.add_subcommand(
      "user-certificate",
      "make NAME.key, NAME.crt and ca.crt for a person or program; what it may do is said\n"
      "by role bindings (rocegwctl create rolebinding)");
  user.add_option("NAME", arguments.user, "1 to 63 of a-z, 0-9 and '-'")->required();
  user.add_option("--out", arguments.directory,
                  "directory for the files, made if need be; default: this one")
      ->type_name("DIR");
  user.add_option("--lifetime", arguments.lifetime, "default 90d")
      ->type_name("TIME")
      ->check(CheckDuration);
  user.callback([&arguments] { arguments.user_certificate = true; });
}

// Returns kGoOn, or the exit status.
int ParseArguments(int argc, char** argv, Arguments& arguments) {
  CLI::App app(
      "Control plane of RDMA gateways. Needs no configuration: it makes its certificate authority\n"
      "and store in the state directory and says how a host joins. Agents and clients come to\n"
      "port 7471 with certificates, the administrator of this host to a unix socket.");
  app.footer(
      "Signals: SIGTERM, SIGINT: it stops; gateways go on. SIGHUP: log_level is read again.\n"
      "\n"
      "Files:\n"
      "  /etc/rocegw/rocegw-controller.yaml   the configuration, if it is there\n"
      "  /var/lib/rocegw-controller           state_dir: ca.key, ca.crt (keep a copy), "
      "server.key,\n"
      "                                       server.crt, fleet.db (the store), admin.sock,\n"
      "                                       join.yaml (for the first host)\n"
      "\n"
      "Environment: NOTIFY_SOCKET, JOURNAL_STREAM as systemd sets them.\n"
      "\n"
      "Exit status: 0 stopped as asked, 2 wrong usage or configuration, 3 the machine lacks\n"
      "something (rights, a free port, a store), 70 a bug.\n"
      "\n"
      "Examples:\n"
      "  rocegw-controller\n"
      "  rocegw-controller join-token --gateway host-a > join.yaml\n"
      "  rocegw-controller user-certificate alice --out alice\n"
      "  rocegwctl create rolebinding alice subject=spiffe://rocegw/user/alice role=operator");
  std::string log_level;
  app.add_option("--config", arguments.config_file,
                 std::string("configuration (YAML); default: ") + kDefaultConfigFile +
                     " where that exists, else built-in values")
      ->type_name("FILE");
  app.add_option("--state-dir", arguments.state_dir, "over the file's state_dir")->type_name("DIR");
  app.add_option("--log-level", log_level, "trace, debug, info, warn or error; over the file's")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}).description(""));
  app.add_flag("--check-config", arguments.check_config, "check the configuration and leave");
  app.add_flag("--print-default-config", arguments.print_default_config,
               "print every key with its default and meaning, and leave");
  app.set_version_flag("--version", "rocegw-controller " + process::VersionText());
  AddCommands(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  arguments.log_level = process::LogLevelFromName(log_level);
  if (!arguments.state_dir.empty()) {
    arguments.state_dir = std::filesystem::absolute(arguments.state_dir).lexically_normal();
    if (arguments.state_dir.size() > 1 && arguments.state_dir.ends_with('/')) {
      arguments.state_dir.pop_back();
    }
  }
  if (arguments.config_file.empty() && std::filesystem::exists(kDefaultConfigFile)) {
    arguments.config_file = kDefaultConfigFile;
  }
  return kGoOn;
}

ConfigResult Load(const Arguments& arguments) {
  ConfigResult result;
  if (!arguments.config_file.empty()) result = ReadConfig(arguments.config_file);
  if (!arguments.state_dir.empty()) result.config.state_dir = arguments.state_dir;
  return result;
}

void Reload(const Arguments& arguments) {
  const ConfigResult fresh = Load(arguments);
  process::ReloadLogLevel(fresh.problems, arguments.log_level.value_or(fresh.config.log_level));
}

// Stops the controller within a time limit, even if a call never ends.
void StopInTime(Controller& controller) {
  std::mutex mutex;
  std::condition_variable stopped;
  bool done = false;
  std::thread watchdog([&] {
    std::unique_lock lock(mutex);
    if (stopped.wait_for(lock, kStopsWithin, [&] { return done; })) return;
    spdlog::critical("calls did not end in time; this is a bug");
    spdlog::default_logger()->flush();
    std::_Exit(kInternal);
  });
  controller.Stop();
  {
    const std::lock_guard lock(mutex);
    done = true;
    stopped.notify_all();
  }
  watchdog.join();
}

int Serve(const Arguments& arguments, Config config) {
  process::RaiseDescriptorLimit();
  const auto manager = process::ServiceManager::FromEnvironment();
  auto signals = process::BlockSignals();
  if (!signals.ok()) {
    spdlog::error(signals.status().text());
    return kEnvironment;
  }
  Controller controller(std::move(config));
  if (const Status status = controller.Start(); !status.ok()) {
    spdlog::error(status.text());
    return kEnvironment;
  }
  const std::string summary = controller.Summary();
  spdlog::info("rocegw-controller {} is ready: {}", process::VersionText(), summary);
  std::cout << controller.HowToJoin() << std::flush;
  // A full disk behind the output is no failure of the stop.
  std::cout.clear();
  std::clearerr(stdout);
  manager.Ready(summary);
  for (;;) {
    const auto next = controller.Tick();
    if (controller.WantsToStartAnew()) {
      manager.Reloading();
      StopInTime(controller);
      spdlog::info("starting anew after the step of the clock");
      spdlog::default_logger()->flush();
      return identity::kStartAnew;
    }
    pollfd fd = {signals->get(), POLLIN, 0};
    if (poll(&fd, 1, static_cast<int>(next.count()) + 1) <= 0) continue;
    signalfd_siginfo info{};
    if (read(signals->get(), &info, sizeof info) != sizeof info) continue;
    if (info.ssi_signo != SIGHUP) {
      spdlog::info("signal {}: stopping", info.ssi_signo);
      break;
    }
    manager.Reloading();
    Reload(arguments);
    manager.Ready(summary);
  }
  manager.Stopping("ending calls");
  StopInTime(controller);
  spdlog::info("stopped");
  return kOk;
}

int PrintJoinToken(const Arguments& arguments, const Config& config) {
  const auto channel = grpc::CreateChannel("unix:" + config.AdminSocket(),
                                           grpc::experimental::LocalCredentials(UDS));
  const auto stub = admin::v1::Gateways::NewStub(channel);
  admin::v1::CreateJoinTokenRequest request;
  if (!arguments.gateway.empty()) request.set_name("gateways/" + arguments.gateway);
  std::chrono::seconds lifetime{0};
  if (ReadDuration(arguments.lifetime, lifetime)) {
    request.mutable_lifetime()->set_seconds(lifetime.count());
  }
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallTime);
  admin::v1::CreateJoinTokenResponse response;
  const grpc::Status status = stub->CreateJoinToken(&context, request, &response);
  if (!status.ok()) {
    std::cerr << "rocegw-controller: " << config.AdminSocket() << ": " << status.error_message()
              << "\n";
    return status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ? kUsage : kEnvironment;
  }
  std::cout << response.token_file();
  return kOk;
}

int WriteUserCertificate(const Arguments& arguments, const Config& config) {
  std::chrono::seconds lifetime = std::chrono::hours(24 * 90);
  (void)ReadDuration(arguments.lifetime, lifetime);
  auto made = MakeUserCertificate(config, arguments.user, lifetime, arguments.directory);
  if (!made.ok()) {
    std::cerr << "rocegw-controller: " << made.status().text() << "\n";
    return made.status().error() == EINVAL ? kUsage : kEnvironment;
  }
  std::cout << arguments.directory << "/" << arguments.user << ".{key,crt}: " << made->uri
            << ", until " << made->expires << "\n";
  return kOk;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (const int code = ParseArguments(argc, argv, arguments); code != kGoOn) return code;
  if (arguments.print_default_config) {
    std::cout << DefaultConfigText();
    return kOk;
  }
  ConfigResult loaded = Load(arguments);
  for (const std::string& problem : loaded.problems) {
    std::cerr << "rocegw-controller: " << problem << "\n";
  }
  if (!loaded.problems.empty()) return kUsage;
  if (arguments.check_config) {
    std::cout << (arguments.config_file.empty() ? "built-in configuration" : arguments.config_file)
              << ": good\n";
    return kOk;
  }
  if (arguments.join_token) return PrintJoinToken(arguments, loaded.config);
  if (arguments.user_certificate) return WriteUserCertificate(arguments, loaded.config);
  process::StartLogging("rocegw-controller", arguments.log_level.value_or(loaded.config.log_level));
  process::RouteGrpcLog();
  return Serve(arguments, std::move(loaded.config));
}

}  // namespace
}  // namespace rocegw::server

int main(int argc, char** argv) {
  try {
    const int code = rocegw::server::Main(argc, argv);
    if (code == rocegw::identity::kStartAnew) {
      execv("/proc/self/exe", argv);
      return rocegw::process::kInternal;
    }
    return rocegw::process::FinishOutput("rocegw-controller", code, rocegw::process::kEnvironment);
  } catch (const std::exception& error) {
    std::cerr << "rocegw-controller: internal error: " << error.what() << "\n";
    return rocegw::process::kInternal;
  }
}
