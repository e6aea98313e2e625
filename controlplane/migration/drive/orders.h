// SPDX-License-Identifier: Apache-2.0
// Orders of persons: which are accepted in which state, and what they do. One thread.
#pragma once

#include <string>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/drive/node_runs.h"
#include "controlplane/migration/drive/record.h"
#include "controlplane/migration/drive/record_writer.h"

namespace rocegw::migration {

class Orders {
 public:
  Orders(const Plan& plan, Record& record, RecordWriter& writer, NodeRuns& runs)
      : plan_(plan), record_(record), writer_(writer), runs_(runs) {}

  // Carries out the order, or returns why not, one line.
  std::string Obey(const Order& order);
  // Leaves PAUSED.
  void Resume(const std::string& reason);
  // Turns every changed node back; the migration ends as `ends_as`.
  void RollBackAll(MigrationState ends_as, const std::string& reason);

 private:
  std::string Start();
  std::string AskPreflight();
  std::string Approve(const Order& order);
  std::string ResumeByOrder();
  std::string Abort();
  std::string Set(const Order& order);
  std::string RollBack(const Order& order);
  std::string Finalize();
  std::string Retry(const Order& order);
  std::string Skip(const Order& order);
  std::string NodeOf(const Order& order, uint32_t& node) const;
  bool IsIn(std::initializer_list<MigrationState> states) const;
  std::string NotIn() const;
  void FlagForRollback(uint32_t node, const std::string& reason);
  void HoldWaves();

  const Plan& plan_;
  Record& record_;
  RecordWriter& writer_;
  NodeRuns& runs_;
};

// Returns true if the change window is open at `now`, or there is none.
bool WindowIsOpen(const Knobs& knobs, int64_t now);

}  // namespace rocegw::migration
