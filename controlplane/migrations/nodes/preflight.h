// SPDX-License-Identifier: Apache-2.0
// Preflight of a migration: each node's agent is connected and runs the plan's adapter, the adapter
// has every call that the plan needs and finds the node healthy, its gateway has queue pairs left
// for the peers, whole packets pass between gateways in both directions, the network beside RDMA is
// measured, no gate fails already, and the inventory is the planned one. Decides nothing about
// time: the caller asks and brings answers. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/migration/drive/events.h"
#include "controlplane/migrations/nodes/node_answers.h"

namespace rocegw::migrations {

class Preflight {
 public:
  // Questions at a time.
  static constexpr size_t kMostInFlight = 32;
  // Path tests at a time; a node takes part in two.
  static constexpr size_t kMostPaths = 8;

  explicit Preflight(const migration::Plan& plan) : plan_(plan) {}

  struct Question {
    Purpose purpose = Purpose::kHello;
    uint32_t node = 0;
    uint32_t peer = 0;  // other end of a path test
  };
  // Returns the next question to ask now; nullopt: wait for answers, or it is over.
  std::optional<Question> Next();
  void OnAnswer(const Arrived& arrived);
  void OnUnreachable(uint32_t node);
  // `problem`: what the controller knows against the node; the node itself is still asked.
  void OnProblem(uint32_t node, const std::string& problem);
  // Returns the result once every answer is there.
  std::optional<migration::PreflightResult> Result() const;

 private:
  void Add(migration::Finding finding);
  // The migration does not start.
  void Complain(const std::string& subject, const std::string& text,
                const std::string& remedy = {});
  void OnHealth(const Arrived& arrived);
  void OnPath(const Arrived& arrived);
  void OnQuota(const Arrived& arrived);
  // Returns the number of paths: each node to the next one, the last one to the first. The quotas
  // of as many nodes are read.
  uint32_t paths() const;

  const migration::Plan& plan_;
  uint32_t next_ = 0;
  uint32_t next_health_ = 0;
  uint32_t next_quota_ = 0;
  uint32_t next_path_ = 0;
  size_t in_flight_ = 0;
  // Worst values of all paths, and the path whose rate is the lowest.
  uint64_t slowest_ns_ = 0;  // median round trip
  uint64_t slowest_p99_ns_ = 0;
  uint64_t lowest_rate_ = UINT64_MAX;  // bytes per second
  std::string lowest_rate_path_;
  bool gates_asked_ = false;
  std::string undecided_;  // why a gate has no answer yet
  bool inventory_asked_ = false;
  bool inventory_read_ = false;
  size_t problems_ = 0;
  size_t warnings_ = 0;
  std::vector<migration::Finding> findings_;
};

// Returns the calls that a plan may need, by its class of system.
std::vector<std::string> CallsFor(const migration::Plan& plan);

}  // namespace rocegw::migrations
