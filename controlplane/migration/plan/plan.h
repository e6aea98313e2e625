// SPDX-License-Identifier: Apache-2.0
// Plan of a migration: which nodes change their transport, in which waves and under which limits.
// A plan is immutable: its hash covers every field, and a changed plan does not fit its hash. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/migration/model/names.h"

namespace rocegw::migration {

// Limits that a person may change while the migration runs; those of the plan are the first ones.
// Times are seconds.
struct Knobs {
  uint32_t max_unavailable = 1;
  int64_t soak = 600;
  int64_t step_deadline = 600;     // for one step of one node, repetitions included
  int64_t retry_after = 10;        // after an answer "not yet"
  int64_t lost_after = 120;        // an unreachable node is then quarantined
  int64_t preflight_valid = 3600;  // a start needs a preflight that is younger
  int64_t window_begin = 0;        // change window, seconds since 1970; 0: no window
  int64_t window_end = 0;
  bool automatic_approval = false;
};

struct PlannedNode {
  std::string name;
  std::string domain;  // failure domain; empty: the plan does not look at domains
  Transport from = Transport::kTcp;
  bool quorum = false;
  bool keeps_old = false;  // a client that cannot move uses the old path: it is never removed
};

struct Wave {
  std::string name;
  std::vector<uint32_t> nodes;  // indices into Plan::nodes
};

struct Plan {
  std::string name;
  std::string cluster;
  std::string adapter;
  std::string inventory_hash;
  Transport target = Transport::kGateway;
  SystemClass system_class = SystemClass::kDualPath;
  bool restarts = false;       // nodes restart with the new transport; false: both paths for a time
  bool flag_day = false;       // all nodes change together, in a window without service
  std::string per_domain;      // "rack": nodes of at most one rack are out of service at a time
  std::string oldest_version;  // window of gateway versions; empty: not known
  std::string newest_version;
  Knobs knobs;
  std::vector<std::string> gates;  // PromQL; each must hold at the end of a wave
  std::vector<PlannedNode> nodes;
  std::vector<Wave> waves;
  std::vector<std::string> skipped;  // nodes that have the transport already
  std::vector<std::string> notes;    // for the person who reads the plan
};

inline constexpr size_t kMostGates = 32;
inline constexpr size_t kMostWaves = 256;
inline constexpr size_t kMostPlanBytes = 32 << 20;

std::string HashOf(const Plan& plan);
// With the hash as field "hash".
std::string PlanJson(const Plan& plan);
// Reads a plan and checks its hash. `problem`: one line; empty: it was read.
Plan ReadPlan(std::string_view json, std::string& problem);

}  // namespace rocegw::migration
