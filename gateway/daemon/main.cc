// SPDX-License-Identifier: Apache-2.0
// rocegwd: the gateway daemon. This file reads the command line, handles signals, and turns errors
// into one line and an exit status; the daemon itself is gateway.cc. With --take-over the process
// replaces a running daemon (docs/operate/upgrade.md).
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/daemon/config.h"
#include "gateway/daemon/gateway.h"
#include "gateway/daemon/key_file.h"
#include "gateway/daemon/take_over/successor_process.h"
#include "gateway/daemon/take_over/take_over_client.h"
#include "gateway/process/build_info.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/grpc/grpc_log.h"
#include "gateway/process/log/logging.h"
#include "gateway/process/output.h"
#include "gateway/process/sd_notify.h"
#include "gateway/process/startup.h"
#include "gateway/process/stop_deadline.h"
#include "gateway/session/descriptors/receiver_process.h"

namespace rocegw::daemon {
namespace {

using process::kEnvironment;
using process::kInternal;
using process::kOk;
using process::kUsage;
using process::LogLevelFromName;
using process::ServiceManager;
using process::StartLogging;
using process::VersionText;

// Stop limit, below the limits of service managers. Sessions get ten seconds of it.
constexpr Duration kStopsWithin = Seconds(20);
constexpr const char* kDefaultConfigFile = "/etc/rocegw/rocegwd.yaml";

struct Arguments {
  std::string config_file;  // empty: none
  std::optional<LogLevel> log_level;
  bool check_config = false;
  bool print_default_config = false;
  bool take_over = false;
  bool detach = false;
  bool stay = false;
  bool idle = false;
};

// Longest wait for the locks of a daemon that ended in the middle of a take-over.
constexpr Duration kLocksFreeWithin = Seconds(5);
constexpr int kLocksAgainMs = 10;
constexpr int kMainProcessTold = 5;
constexpr int kMainProcessEveryMs = 100;

constexpr char kFooter[] =
    "Signals: SIGTERM, SIGINT: sessions end, then the daemon. SIGHUP: log_level of the\n"
    "configuration and the file gateways.key_file are read again; all else needs a restart.\n"
    "SIGUSR2: starts the program's file with --take-over.\n"
    "\n"
    "Files:\n"
    "  /etc/rocegw/rocegwd.yaml   the configuration, if it is there\n"
    "  /run/rocegw                runtime_dir: attach.sock (programs), a/*/*/attach.sock (slots\n"
    "                             of pools), grpc.sock (agent, rocegwctl), config.state (what\n"
    "                             an agent applied last), sysfs (for programs)\n"
    "\n"
    "Take-over: with --take-over this process replaces the rocegwd of the same runtime_dir, which\n"
    "ends; sockets, what waits in them, and attached programs go over. Where the two do not fit,\n"
    "nothing changes, and this process ends with status 3 and the reason.\n"
    "\n"
    "Environment: NOTIFY_SOCKET, JOURNAL_STREAM as systemd sets them.\n"
    "\n"
    "Exit status: 0 stopped as asked, 2 wrong usage or configuration, 3 the machine lacks\n"
    "something (rights, an interface, a free port), 70 a bug.\n"
    "\n"
    "Examples:\n"
    "  rocegwd                                            on the interface of the default route\n"
    "  rocegwd --print-default-config > rocegwd.yaml\n"
    "  rocegwd --config rocegwd.yaml --check-config\n"
    "  rocegwd --take-over --detach                       replaces the running daemon\n"
    "  rocegw-run -- ibv_devinfo                          a program that uses it\n"
    "  rocegwctl --local status                           what it does";

constexpr int kMostTries = 5;
constexpr int kGoOn = -1;
constexpr int kAgain = -2;

// Returns kGoOn, or the exit status.
int ParseArguments(int argc, char** argv, Arguments& arguments) {
  CLI::App app(
      "RDMA gateway: lets programs on this host speak RoCEv2 without RDMA hardware. Programs\n"
      "attach to it with rocegw-run; without any configuration it serves everybody on the\n"
      "host in one pool, with an agent it does what the fleet's controller says.");
  app.footer(kFooter);
  std::string log_level;
  app.add_option("--config", arguments.config_file,
                 std::string("configuration (YAML); default: ") + kDefaultConfigFile +
                     " where that exists, else built-in values")
      ->type_name("FILE");
  app.add_option("--log-level", log_level, "trace, debug, info, warn or error; over the file's")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}).description(""));
  app.add_flag("--check-config", arguments.check_config, "check the configuration and leave");
  app.add_flag("--print-default-config", arguments.print_default_config,
               "print every key with its default and meaning, and leave");
  auto* const take_over = app.add_flag("--take-over", arguments.take_over,
                                       "replace the running daemon; start as usual if none runs");
  app.add_flag("--detach", arguments.detach,
               "leave when the new daemon serves, which goes on in the background")
      ->needs(take_over);
  app.add_flag("--stay-when-replaced", arguments.stay,
               "when another process has taken over, run on with --idle (for pods)");
  app.add_flag("--idle", arguments.idle, "do nothing until SIGTERM or SIGINT");
  app.set_version_flag("--version", "rocegwd " + VersionText());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (const auto level = LogLevelFromName(log_level)) arguments.log_level = *level;
  if (arguments.config_file.empty() && std::filesystem::exists(kDefaultConfigFile)) {
    arguments.config_file = kDefaultConfigFile;
  }
  return kGoOn;
}

ConfigResult Load(const Arguments& arguments) {
  if (arguments.config_file.empty()) return {};
  ConfigResult result = ReadConfig(arguments.config_file);
  if (result.problems.empty())
    result.problems = Gateway::CheckStatic(result.config, arguments.config_file);
  const std::string& key_file = result.config.gateways.key_file;
  if (result.problems.empty() && !key_file.empty()) {
    if (const auto keys = ReadKeyFile(key_file); !keys.ok())
      result.problems.push_back(arguments.config_file +
                                ": gateways.key_file: " + keys.status().text());
  }
  return result;
}

void Reload(const Arguments& arguments) {
  const ConfigResult fresh = Load(arguments);
  process::ReloadLogLevel(fresh.problems, arguments.log_level.value_or(fresh.config.log_level));
}

// Ends the process without destructors, since they would remove what another daemon serves.
[[noreturn]] void LeaveEverything(int code) {
  process::FlushLog();
  std::_Exit(code);
}

[[noreturn]] void GiveUp(const take_over::Refuse& refuse, const Invocation& invocation,
                         Detached& detached) {
  if (refuse.refusal == take_over::Refusal::kChanged && CountTries() < kMostTries) {
    spdlog::info("take-over: {}; it is tried again", refuse.text);
    process::FlushLog();
    RunAnew(invocation, detached);
  }
  std::string line = std::string("take-over: not done: ") + take_over::TextOf(refuse.refusal);
  if (!refuse.text.empty()) line += ": " + refuse.text;
  spdlog::error(line);
  LeaveEverything(kEnvironment);
}

// Runs the program anew, because the daemon that it should replace has ended.
[[noreturn]] void StartAnew(const Invocation& invocation, const TakeOverClient& client,
                            Detached& detached) {
  spdlog::warn("take-over: the running daemon ended; this one starts as usual");
  client.AwaitEndOfPredecessor(kLocksFreeWithin);
  process::FlushLog();
  RunAnew(invocation, detached);
  std::_Exit(kInternal);
}

// Ends this process behind its successor. The service manager hears of the new main process more
// than once, because some ignore that while a reload is in progress.
[[noreturn]] void LeaveToSuccessor(Gateway& gateway, const ServiceManager& manager,
                                   const Invocation& invocation, bool stays) {
  manager.MainProcess(gateway.successor());
  gateway.LeaveToSuccessor();
  for (int i = 0; !invocation.notify_socket.empty() && i < kMainProcessTold; ++i) {
    (void)poll(nullptr, 0, kMainProcessEveryMs);
    manager.MainProcess(gateway.successor());
  }
  spdlog::info("left to process {}", gateway.successor());
  if (stays) {
    process::FlushLog();
    RunIdle(invocation);
  }
  LeaveEverything(kOk);
}

// Starts the gateway. Returns kGoOn, kAgain if a lock may become free, or the exit status. With a
// predecessor this process acts in its place afterwards, or does not return.
int Begin(const Arguments& arguments, Gateway& gateway, TakeOverClient* client, TimePoint patience,
          const Invocation& invocation, Detached& detached) {
  Status status = gateway.Start();
  if (client == nullptr) {
    if (status.ok()) return kGoOn;
    // The kernel may be closing what a daemon that was killed just now had.
    if (arguments.take_over && status.error() == EADDRINUSE && MonotonicNow() < patience) {
      (void)poll(nullptr, 0, kLocksAgainMs);
      return kAgain;
    }
    spdlog::error(status.text());
    return kEnvironment;
  }
  const auto go_on = [&](TakeOverClient::Outcome outcome) {
    if (outcome == TakeOverClient::Outcome::kPredecessorEnded)
      StartAnew(invocation, *client, detached);
    if (outcome != TakeOverClient::Outcome::kGoOn) GiveUp(client->refuse(), invocation, detached);
  };
  if (status.ok()) {
    go_on(client->AwaitState());
    status = gateway.Build(client->state(), client->state_began());
  }
  if (status.ok()) {
    go_on(client->AwaitCommit());
    const auto blackout = gateway.Act(client->predecessor_version(), client->descriptors());
    status = blackout.status();
    if (status.ok()) {
      client->SendServing(blackout.value());
      gateway.LetWorkersAct();
      return kGoOn;
    }
  }
  client->SendFailed(status.text());
  spdlog::error(status.text());
  LeaveEverything(kEnvironment);
}

int Serve(const Arguments& arguments, const Invocation& invocation, const Config& config,
          std::shared_ptr<session::DescriptorReceiver> descriptors, Detached& detached) {
  process::RaiseDescriptorLimit();
  const ServiceManager manager = ServiceManager::FromEnvironment();
  auto signals = process::BlockSignals({SIGUSR2});
  if (!signals.ok()) {
    spdlog::error(signals.status().text());
    return kEnvironment;
  }
  TakeOverClient client;
  bool takes_over = false;
  if (arguments.take_over) {
    switch (client.Ask(config.runtime_dir + "/take_over.sock", process::Version(),
                       Gateway::ShapeOf(config))) {
      case TakeOverClient::Outcome::kRefused:
        GiveUp(client.refuse(), invocation, detached);
      case TakeOverClient::Outcome::kPredecessorEnded:
        StartAnew(invocation, client, detached);
      case TakeOverClient::Outcome::kNobody:
        spdlog::info("take-over: no daemon runs; this one starts as usual");
        break;
      case TakeOverClient::Outcome::kGoOn:
        takes_over = true;
    }
  }
  std::optional<Gateway> started;
  int begun = kEnvironment;
  const TimePoint patience = MonotonicNow() + kLocksFreeWithin;
  do {
    started.emplace(config, descriptors,
                    takes_over
                        ? std::optional(Gateway::Predecessor{client.fds(), client.foundation()})
                        : std::nullopt);
    begun =
        Begin(arguments, *started, takes_over ? &client : nullptr, patience, invocation, detached);
  } while (begun == kAgain);
  Gateway& gateway = *started;
  if (begun != kGoOn) return begun;
  detached.Serves();
  gateway.SetSpawn([&invocation] { return SpawnSuccessor(invocation); });
  const auto watch = gateway.loop().Watch(signals->get(), EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info{};
    if (read(signals->get(), &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo == SIGHUP) {
      manager.Reloading();
      Reload(arguments);
      gateway.ReloadKeys();
      manager.Ready(gateway.Summary());
    } else if (info.ssi_signo == SIGUSR2) {
      gateway.OrderTakeOver();
    } else {
      spdlog::info("signal {}: stopping", info.ssi_signo);
      gateway.RequestStop();
    }
  });
  spdlog::info("rocegwd {} is ready: {}", VersionText(), gateway.Summary());
  // While the predecessor runs, the service manager listens to that process.
  ControlLoop::WatchId predecessor_watch = 0;
  if (takes_over) {
    predecessor_watch = gateway.loop().Watch(client.fd(), EPOLLIN, [&](uint32_t) {
      gateway.loop().Unwatch(std::exchange(predecessor_watch, 0));
      manager.Ready(gateway.Summary());
    });
  } else {
    manager.Ready(gateway.Summary());
  }
  gateway.Run();
  gateway.loop().Unwatch(predecessor_watch);
  if (gateway.successor() != 0) LeaveToSuccessor(gateway, manager, invocation, arguments.stay);
  manager.Stopping("ending sessions");
  gateway.loop().Unwatch(watch);
  // A stuck thread is not waited for: no destructor may run then.
  const process::StopDeadline deadline(kStopsWithin, [&gateway] {
    const std::string stuck = gateway.Stuck();
    spdlog::critical("not stopped in time: {}", stuck.empty() ? "a thread does not end" : stuck);
    process::FlushLog();
    std::_Exit(kInternal);
  });
  if (!gateway.Stop()) {
    spdlog::critical("sessions did not end in time; this is a bug");
    process::FlushLog();
    // Workers still use client memory: no destructor may run.
    std::_Exit(kInternal);
  }
  spdlog::info("stopped");
  return kOk;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (const int code = ParseArguments(argc, argv, arguments); code != kGoOn) return code;
  if (arguments.idle) {
    AwaitStop();
    return kOk;
  }
  if (arguments.print_default_config) {
    std::cout << DefaultConfigText();
    return kOk;
  }
  ConfigResult loaded = Load(arguments);
  for (const std::string& problem : loaded.problems) std::cerr << "rocegwd: " << problem << "\n";
  if (!loaded.problems.empty()) return kUsage;
  if (arguments.check_config) {
    std::cout << (arguments.config_file.empty() ? "built-in configuration" : arguments.config_file)
              << ": good\n";
    return kOk;
  }
  const Invocation invocation = Invocation::Of(argc, argv);
  Detached detached;
  detached.TakeUp();
  if (arguments.detach) {
    if (const int code = detached.Fork(); code != Detached::kGoOn) return code;
  }
  auto descriptors = session::ReceiverProcess::Start();  // before there are threads
  StartLogging("rocegwd", arguments.log_level.value_or(loaded.config.log_level));
  process::RouteGrpcLog();
  if (!descriptors.ok()) {
    spdlog::error(descriptors.status().text());
    return kEnvironment;
  }
  return Serve(arguments, invocation, loaded.config, std::move(*descriptors), detached);
}

}  // namespace
}  // namespace rocegw::daemon

int main(int argc, char** argv) {
  try {
    return rocegw::process::FinishOutput("rocegwd", rocegw::daemon::Main(argc, argv),
                                         rocegw::process::kEnvironment);
  } catch (const std::exception& error) {
    std::cerr << "rocegwd: internal error: " << error.what() << "\n";
    return rocegw::process::kInternal;
  }
}
