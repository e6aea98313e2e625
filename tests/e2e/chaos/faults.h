// SPDX-License-Identifier: Apache-2.0
// Kills and stops controllers and etcd members at random, and brings them back. What it does
// follows from the seed, but for the times at which the machine gets to it. It also does what a
// service manager does: a controller that gave up because its store could not be reached is started
// again. One thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/e2e/chaos/event_log.h"
#include "tests/e2e/store/etcd_cluster.h"
#include "tests/support/fleet/controller_program.h"
#include "tests/support/random.h"

namespace rocegw::testing::chaos {

class Faults {
 public:
  using Controllers = std::vector<std::unique_ptr<ControllerProgram>>;
  Faults(Controllers& controllers, EtcdCluster& etcd, uint64_t seed, EventLog& log);

  // first_stopped: a controller that is stopped at once, longer than its leases last.
  void Run(std::chrono::seconds time, size_t first_stopped);
  // All are up again, or on their way.
  void EndAll();

  // Which controller had the process.
  const std::vector<std::pair<pid_t, size_t>>& processes() const { return processes_; }
  // A process that ended as it must not: "" if none did.
  const std::string& problem() const { return problem_; }
  size_t count() const { return count_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kUp, kKilled, kStopped };
  struct Target {
    State state = State::kUp;
    Clock::time_point until;
  };

  size_t Impaired(size_t begin, size_t end) const;
  bool IsController(size_t target) const { return target < controllers_.size(); }
  std::string NameOf(size_t target) const;
  void Strike(size_t target, bool kill, std::chrono::milliseconds time);
  void Recover(size_t target);
  void StrikeAny();
  void StartController(size_t controller);
  // Those that ended by themselves.
  void LookAfterControllers();

  Controllers& controllers_;
  EtcdCluster& etcd_;
  Random random_;
  EventLog& log_;
  std::vector<Target> targets_;  // controllers, then members
  std::vector<std::pair<pid_t, size_t>> processes_;
  std::string problem_;
  size_t count_ = 0;
};

}  // namespace rocegw::testing::chaos
