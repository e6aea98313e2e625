// SPDX-License-Identifier: Apache-2.0
// What all commands of rocegwctl share: the options that hold everywhere, the connection, how
// results and errors are printed. Data goes to stdout, everything else to stderr. One thread.
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
  // What the chosen subcommand does; returns the exit code.
  std::function<int()> run;

  // Adds a subcommand that does `work`; examples become the end of its help.
  CLI::App* Add(CLI::App& to, const std::string& name, const std::string& help,
                const std::string& examples, std::function<int()> work);

  // Connects to where the options say. Once.
  CallResult Open();
  // As Open, and it must be a controller.
  CallResult OpenController();
  bool is_gateway() const { return endpoint_.what == "gateway"; }
  Rpc& rpc() { return *rpc_; }
  ObjectsClient objects() { return ObjectsClient(*rpc_); }

  bool wide() const { return options.format == "wide"; }
  bool is_table() const { return options.format == "table" || options.format == "wide"; }
  // Characters in a line of a table, 0: no limit.
  size_t line_limit() const;
  // Colour on stdout: a terminal, and NO_COLOR is not set.
  static bool colour();
  static int64_t Now();

  // How long --wait waits.
  std::chrono::milliseconds patience() const;

 private:
  Endpoint endpoint_;
  std::unique_ptr<Rpc> rpc_;
};

// Prints the error; its exit code.
int Fail(const CallResult& result);
int FailUsage(const std::string& text);

// One line on stderr that changes, if that is a terminal; erased at the end.
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

// The groups of commands.
void AddReadCommands(CLI::App& app, Program& program);
void AddWriteCommands(CLI::App& app, Program& program);
void AddStatusCommand(CLI::App& app, Program& program);
void AddDebugCommands(CLI::App& app, Program& program);
void AddConnectivityCommands(CLI::App& app, Program& program);
void AddDoctorCommand(CLI::App& app, Program& program);
void AddDrainCommands(CLI::App& app, Program& program);
void AddFleetCommands(CLI::App& app, Program& program);
void AddAuditCommands(CLI::App& app, Program& program);
void AddConfigCommands(CLI::App& app, Program& program);
void AddSysdumpCommand(CLI::App& app, Program& program);
void AddCompletionCommand(CLI::App& app, Program& program);

}  // namespace rocegw::cli
