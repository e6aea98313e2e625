// SPDX-License-Identifier: Apache-2.0
// Changes states in a record, and keeps with each change what the audit chain needs. No other code
// assigns a state. One thread.
#pragma once

#include <set>
#include <string>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/drive/record.h"

namespace rocegw::migration {

class RecordWriter {
 public:
  RecordWriter(const Plan& plan, Record& record, Transition& transition)
      : plan_(plan), record_(record), transition_(transition) {}

  // The person behind the changes that follow; "controller" otherwise.
  void ActFor(const Order& order);
  void Cite(std::string output_digest) { output_digest_ = std::move(output_digest); }

  void SetMigration(MigrationState state, std::string reason);
  void SetWave(uint32_t wave, WaveState state);
  void SetNode(uint32_t node, NodeState state, std::string reason = {});
  void Pause(PauseReason why, std::string reason);
  // Records a person's order that changes no state.
  void NoteOrder(const std::string& subject, const std::string& text);
  // Returns the node for changes beside its state.
  NodeRecord& Touch(uint32_t node);
  void Send(Intent intent) { transition_.intents.push_back(std::move(intent)); }

 private:
  void Add(std::string subject, std::string_view before, std::string_view after,
           std::string reason);

  const Plan& plan_;
  Record& record_;
  Transition& transition_;
  std::string who_ = "controller";
  std::string request_id_;
  std::string output_digest_;
};

// Returns the head of the audit chain after `change`.
std::string NextAuditHead(const std::string& head, const std::string& plan_hash,
                          const Change& change);

}  // namespace rocegw::migration
