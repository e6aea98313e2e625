// SPDX-License-Identifier: Apache-2.0
// Memory of an agent for the commands of one migration: a command runs once, however often it is
// sent, and a controller that was replaced is refused. The agent writes the book to its disk before
// it runs a command. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "controlplane/migration/drive/events.h"

namespace rocegw::migration {

class CommandBook {
 public:
  enum class Admission : uint8_t {
    kRun,      // new: run it, then Finish
    kRunning,  // runs already
    kKnown,    // has a result: ResultOf
    kStale,    // by a replaced controller, or older than the book remembers
  };
  // Results that are kept; older ones were received, since a node has one command at a time.
  static constexpr size_t kKept = 16;

  CommandBook() = default;
  // `incarnation`: tells migrations of one name apart; a later one is greater.
  explicit CommandBook(int64_t incarnation) : incarnation_(incarnation) {}
  int64_t incarnation() const { return incarnation_; }

  Admission Admit(uint64_t epoch, uint64_t command);
  void Finish(const StepResult& result);
  const StepResult* ResultOf(uint64_t command) const;
  // Called after a restart of the agent. The outcome of the command that ran is unknown; since
  // steps are idempotent it is run again when it is sent again.
  void ForgetRunning();
  uint64_t epoch() const { return epoch_; }
  std::optional<uint64_t> running() const { return running_; }

  // Text form, for the agent's disk. Read: `problem` says in one line what is wrong; empty: it was
  // read.
  std::string Json() const;
  static CommandBook Read(std::string_view json, std::string& problem);

 private:
  int64_t incarnation_ = 0;
  uint64_t epoch_ = 0;
  std::optional<uint64_t> running_;
  uint64_t newest_ = 0;
  std::map<uint64_t, StepResult> results_;
};

}  // namespace rocegw::migration
