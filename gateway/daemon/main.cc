// SPDX-License-Identifier: Apache-2.0
// rocegwd: the gateway daemon. This file reads the command line, handles signals, and turns errors
// into one line and an exit status; the daemon itself is gateway.cc.
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
#include <optional>
#include <string>

#include "gateway/daemon/config.h"
#include "gateway/daemon/gateway.h"
#include "gateway/daemon/key_file.h"
#include "gateway/process/build_info.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/log/logging.h"
#include "gateway/process/output.h"
#include "gateway/process/sd_notify.h"
#include "gateway/process/startup.h"
#include "gateway/process/stop_deadline.h"

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
};

constexpr char kFooter[] =
    "Signals: SIGTERM, SIGINT: sessions end, then the daemon. SIGHUP: log_level of the\n"
    "configuration and the file gateways.key_file are read again; all else needs a restart.\n"
    "\n"
    "Files:\n"
    "  /etc/rocegw/rocegwd.yaml   the configuration, if it is there\n"
    "  /run/rocegw                runtime_dir: attach.sock (programs), a/*/*/attach.sock (slots\n"
    "                             of pools), grpc.sock (agent, rocegwctl), config.state (what\n"
    "                             an agent applied last), sysfs (for programs)\n"
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
    "  rocegw-run -- ibv_devinfo                          a program that uses it\n"
    "  rocegwctl --local status                           what it does";

constexpr int kGoOn = -1;

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

int Serve(const Arguments& arguments, Config config) {
  process::RaiseDescriptorLimit();
  const ServiceManager manager = ServiceManager::FromEnvironment();
  auto signals = process::BlockSignals();
  if (!signals.ok()) {
    spdlog::error(signals.status().text());
    return kEnvironment;
  }
  Gateway gateway(std::move(config));
  if (const Status status = gateway.Start(); !status.ok()) {
    spdlog::error(status.text());
    return kEnvironment;
  }
  const auto watch = gateway.loop().Watch(signals->get(), EPOLLIN, [&](uint32_t) {
    signalfd_siginfo info{};
    if (read(signals->get(), &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo == SIGHUP) {
      manager.Reloading();
      Reload(arguments);
      if (const Status keys = gateway.ReloadKeys(); !keys.ok())
        spdlog::warn("{}; the keys stay as they were", keys.text());
      manager.Ready(gateway.Summary());
    } else {
      spdlog::info("signal {}: stopping", info.ssi_signo);
      gateway.RequestStop();
    }
  });
  spdlog::info("rocegwd {} is ready: {}", VersionText(), gateway.Summary());
  manager.Ready(gateway.Summary());
  gateway.Run();
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
  StartLogging("rocegwd", arguments.log_level.value_or(loaded.config.log_level));
  return Serve(arguments, std::move(loaded.config));
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
