// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/command_book.h"

#include <algorithm>

namespace rocegw::migration {

CommandBook::Admission CommandBook::Admit(uint64_t epoch, uint64_t command) {
  if (epoch < epoch_) return Admission::kStale;
  epoch_ = epoch;
  if (results_.contains(command)) return Admission::kKnown;
  if (running_ == command) return Admission::kRunning;
  // A controller sends the next command after the result of the one before.
  if (command < newest_ || running_.has_value()) return Admission::kStale;
  newest_ = command;
  running_ = command;
  return Admission::kRun;
}

void CommandBook::Finish(const StepResult& result) {
  if (running_ == result.command) running_.reset();
  results_[result.command] = result;
  if (results_.size() > kKept) results_.erase(results_.begin());
}

const StepResult* CommandBook::ResultOf(uint64_t command) const {
  const auto found = results_.find(command);
  return found == results_.end() ? nullptr : &found->second;
}

void CommandBook::ForgetRunning() { running_.reset(); }

}  // namespace rocegw::migration
