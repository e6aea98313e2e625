// SPDX-License-Identifier: Apache-2.0
// Answers of nodes on their way to the driver's thread, and what they mean for a migration.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migrations/nodes/node_access.h"

namespace rocegw::migrations {

enum class Purpose : uint8_t {
  kCommand,
  kHello,
  kPath,
  kQuota,
  kInventory,
  kHealth,
  kGate,
  kPreflightGate,
  kPreflightHealth
};

struct Arrived {
  std::string migration;
  Purpose purpose = Purpose::kCommand;
  uint32_t node = 0;
  uint64_t number = 0;  // the command, or the round of questions
  NodeAnswer answer;
};

// Queue of answers. Its length is bounded by the questions in flight, at most a few for each node.
// Shared with callbacks that may come after the driver's end. Any thread.
class Inbox {
 public:
  void Put(Arrived arrived);
  // Wakes a waiting Take.
  void Wake();
  // Returns the next answer; nullopt: none came before the timeout or a Wake.
  std::optional<Arrived> Take(std::chrono::milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Arrived> waiting_;
  bool woken_ = false;
};

// Returns true if the call may not have reached the node, or its answer was lost: it is made again.
bool MayBeRepeated(const NodeAnswer& answer);

// Reads the answer to a command. Foreign input: an answer that is not understood is unparsable.
migration::StepResult ResultOf(const Arrived& arrived);

}  // namespace rocegw::migrations
