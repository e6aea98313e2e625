// SPDX-License-Identifier: Apache-2.0
// What must hold after the faults, read from the store itself and from the gateways. Each returns
// what is wrong, "" if nothing. One thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "controlplane/store/store.h"
#include "tests/e2e/chaos/workload.h"
#include "tests/support/fleet/agent_fleet.h"
#include "tests/support/fleet/controller_program.h"

namespace rocegw::testing::chaos {

// Every object is as it was acknowledged, at every controller.
std::string CheckObjects(const Channels& channels, const std::map<std::string, Register>& objects);

// Each acknowledged write stands in the audit records once, none stands there twice.
std::string CheckAudit(store::Store& store, const std::vector<std::string>& acknowledged);

struct Logs {
  // Files of all controllers' logs, and which controller each process was.
  std::vector<std::string> files;
  std::vector<std::pair<pid_t, size_t>> processes;
};
// The chain of seals is whole, and each seal was made by the controller that led at that revision;
// each one that a controller told of is there. seals: how many there are; terms: how often somebody
// began to lead.
std::string CheckReconciler(store::Store& store, const Logs& logs, size_t& seals, size_t& terms);

// Every gateway runs what the store says it should, and the store says that it is connected; waits
// for it.
std::string AwaitConvergence(store::Store& store, AgentFleet& agents, std::chrono::seconds patience,
                             double& seconds);

// How far each controller says that it is; for people, after a failure.
std::string Standing(const Channels& channels);

}  // namespace rocegw::testing::chaos
