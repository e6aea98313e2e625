// SPDX-License-Identifier: Apache-2.0
// Calls of adapters that the controller asks for. A command runs once, however often it is asked
// for, and goes on when its question is dropped: the next question for it gets the result. Each
// call has a deadline, bounded output and a thread of its own, at most kMost at a time. Questions,
// of which people may ask many, leave room for commands. Created, called and destroyed on the
// agent's loop, which outlives it; the destructor kills the programs.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/migration/command_books.h"
#include "controlplane/migration/adapter/protocol.h"
#include "gateway/base/unique_fd.h"
#include "gateway/loop/control_loop.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::agent {

class AdapterCalls {
 public:
  static constexpr size_t kMost = 6;
  static constexpr size_t kMostQuestions = 3;      // without a command
  static constexpr size_t kMostVerifications = 1;  // questions that verify
  // The answer, complete except for its id.
  using Part = std::function<void(fleet::v1::TunnelAnswer)>;

  struct Options {
    std::string adapters_dir;  // empty: no adapter is run
    std::string state_dir;     // the agent's; books of commands are below it
  };
  AdapterCalls(ControlLoop& loop, Options options);
  ~AdapterCalls();
  AdapterCalls(const AdapterCalls&) = delete;
  AdapterCalls& operator=(const AdapterCalls&) = delete;

  void Start(const fleet::v1::MigrationCall& call, Part part);
  size_t running() const { return running_.size(); }

 private:
  struct Running {
    fleet::v1::MigrationCall call;
    std::vector<Part> waiting;
    std::thread thread;
  };
  using Place = std::list<Running>::iterator;

  // Returns true if the command was answered from its book, or waits for one that runs.
  bool AnswerByBook(const fleet::v1::MigrationCall& call, const Part& part);
  // Returns true if no program may be started for the call now.
  bool IsFull(const fleet::v1::MigrationCall& call) const;
  void Launch(const fleet::v1::MigrationCall& call, const std::string& program, Part part);
  void OnReport(Place place, const fleet::v1::MigrationReport& report);

  ControlLoop& loop_;
  const Options options_;
  CommandBooks books_;
  UniqueFd stop_;  // eventfd; readable when the programs have to end
  std::list<Running> running_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
