// SPDX-License-Identifier: Apache-2.0
// Answers of nodes on their way to the driver's thread, and what they mean for a migration.
#pragma once

#include <cstdint>
#include <string>

#include "controlplane/api/driving/answer_queue.h"
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

using Inbox = api::AnswerQueue<Arrived>;

// Reads the answer to a command. Foreign input: an answer that is not understood is unparsable.
migration::StepResult ResultOf(const Arrived& arrived);

}  // namespace rocegw::migrations
