// SPDX-License-Identifier: Apache-2.0
// Waves of a running migration: when the next one begins, which of its nodes may start, its soak
// and its gates. One thread.
#pragma once

#include <string>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/drive/node_runs.h"
#include "controlplane/migration/drive/record.h"
#include "controlplane/migration/drive/record_writer.h"

namespace rocegw::migration {

class WaveRuns {
 public:
  // All of them outlive the object.
  WaveRuns(const Plan& plan, Record& record, RecordWriter& writer, NodeRuns& runs)
      : plan_(plan), record_(record), writer_(writer), runs_(runs) {}

  // Makes the next step of a migration that is RUNNING. Returns true if it changed a state.
  bool Proceed();
  void OnGates(const GateResult& result);
  // Pauses the migration, and holds its wave if that has begun.
  void Pause(PauseReason why, const std::string& text);

 private:
  bool RunWave();
  bool Soak();
  bool StartNodes(const Wave& wave);
  bool QuarantineLost(const Wave& wave);
  void FinishWave();

  const Plan& plan_;
  Record& record_;
  RecordWriter& writer_;
  NodeRuns& runs_;
};

}  // namespace rocegw::migration
