// SPDX-License-Identifier: Apache-2.0
// Common state of all commands of rocegwctl: global options, the connection, output of results and
// errors. Data goes to stdout, everything else to stderr. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "controlplane/cli/client/objects_client.h"
#include "controlplane/cli/client/rpc.h"
#include "controlplane/cli/documents/contexts.h"

namespace rocegw::cli {

struct Options {
  Choice choice;
  std::string format = "table";
  std::chrono::milliseconds timeout{0};  // 0: not given
  WriteOptions write;
};

class Program {
 public:
  Options options;
  // Function of the chosen subcommand; returns the exit code.
  std::function<int()> run;

  // Adds a subcommand that runs `work`; `examples` are appended to its help.
  CLI::App* Add(CLI::App& to, const std::string& name, const std::string& help,
                const std::string& examples, std::function<int()> work);

  // Connects to the server that the options select; once.
  CallResult Open();
  // Connects to a controller; an error for other servers.
  CallResult OpenController();
  bool is_gateway() const { return endpoint_.what == "gateway"; }
  Rpc& rpc() { return *rpc_; }
  ObjectsClient objects() { return ObjectsClient(*rpc_); }

  bool wide() const { return options.format == "wide"; }
  bool is_table() const { return options.format == "table" || options.format == "wide"; }
  // Characters per table line, 0: no limit.
  size_t line_limit() const;
  // Returns true if stdout is a terminal and NO_COLOR is not set.
  static bool colour();
  static int64_t Now();

  // Time limit of --wait.
  std::chrono::milliseconds patience() const;

 private:
  Endpoint endpoint_;
  std::unique_ptr<Rpc> rpc_;
};

// Prints the error and returns its exit code.
int Fail(const CallResult& result);
int FailUsage(const std::string& text);

// Progress line on stderr, if that is a terminal; erased at the end.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Show(const std::string& text);

 private:
  bool terminal_;
  bool shown_ = false;
};

// Groups of commands.
void AddReadCommands(CLI::App& app, Program& program);
void AddWriteCommands(CLI::App& app, Program& program);
void AddStatusCommand(CLI::App& app, Program& program);
void AddDebugCommands(CLI::App& app, Program& program);
void AddConnectivityCommands(CLI::App& app, Program& program);
void AddDoctorCommand(CLI::App& app, Program& program);
void AddDrainCommands(CLI::App& app, Program& program);
void AddDonorCommands(CLI::App& app, Program& program);
void AddPodCommands(CLI::App& app, Program& program);
void AddFleetCommands(CLI::App& app, Program& program);
void AddAuditCommands(CLI::App& app, Program& program);
void AddMigrateCommands(CLI::App& app, Program& program);
void AddConfigCommands(CLI::App& app, Program& program);
void AddSysdumpCommand(CLI::App& app, Program& program);
void AddCompletionCommand(CLI::App& app, Program& program);

}  // namespace rocegw::cli
