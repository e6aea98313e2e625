// SPDX-License-Identifier: Apache-2.0
// Runs a plan against a simulated cluster with the production controller, and checks the invariants
// at each step. Thousands of nodes take a second; nothing outside is touched. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "controlplane/migration/check/invariants.h"
#include "controlplane/migration/drive/events.h"
#include "controlplane/migration/drive/record.h"
#include "controlplane/migration/plan/plan.h"
#include "controlplane/migration/simulate/failure.h"
#include "controlplane/migration/simulate/simulated_cluster.h"

namespace rocegw::migration {

class Simulation {
 public:
  struct Options {
    std::vector<Failure> failures;
    uint64_t seed = 1;
    bool approves = true;  // a person approves each wave at once
    bool stores = false;   // the record is written and read between any two events
    // Tests of the check change a transition before it is carried out.
    std::function<void(Record&, Transition&)> tamper;
  };
  Simulation(const Plan& plan, Options options);

  // Plans, passes the preflight and starts. Returns the refusal, or nothing.
  std::string Begin();
  // Runs until nothing happens by itself any more.
  void RunUntilQuiet();
  // Gives an order; the refusal, or nothing.
  std::string Give(Order order);
  void Bring(const Event& event) { (void)Deliver(event); }

  const Record& record() const { return record_; }
  Record& record() { return record_; }
  SimulatedCluster& cluster() { return cluster_; }
  const std::vector<Change>& changes() const { return changes_; }
  const std::vector<Violation>& violations() const { return check_.violations(); }
  uint32_t most_unavailable() const { return most_unavailable_; }
  uint64_t commands() const { return commands_; }
  int64_t now() const { return now_; }
  bool exhausted() const { return exhausted_; }
  // Why a stored record could not be read; empty: each was.
  const std::string& unread() const { return unread_; }

 private:
  struct Happening {
    int64_t time = 0;
    uint64_t number = 0;
    Event event;
    bool operator>(const Happening& other) const {
      return std::tie(time, number) > std::tie(other.time, other.number);
    }
  };
  Transition Deliver(const Event& event);
  void StoreAndRead(const Transition& transition);
  void CarryOut(const Transition& transition);
  void CarryOut(const CommandIntent& command);
  void After(int64_t seconds, Event event);

  const Plan& plan_;
  const Options options_;
  Record record_;
  SimulatedCluster cluster_;
  InvariantCheck check_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> happenings_;
  uint64_t happened_ = 0;
  int64_t now_ = 1'000'000;
  int64_t wake_at_ = 0;
  std::vector<Change> changes_;
  std::map<uint32_t, bool> lost_;
  uint32_t most_unavailable_ = 0;
  uint64_t commands_ = 0;
  bool exhausted_ = false;
  std::vector<std::string> rows_;  // stored nodes
  std::string unread_;
};

// Orders that are accepted in this state: the ways out of it.
std::vector<Order> Exits(const Plan& plan, const Record& record);
// Returns an order as a person types it, without the name of the migration: "retry --node n3".
std::string OrderText(const Plan& plan, const Order& order);

}  // namespace rocegw::migration
