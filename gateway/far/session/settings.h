// SPDX-License-Identifier: Apache-2.0
// Settings of a session, checked; rocegw_memory.h says what they mean. Values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/disk/copy_file.h"
#include "gateway/far/link/poller.h"
#include "gateway/far/placement/placement.h"
#include "gateway/far/request/merge_queue.h"
#include "gateway/far/session/api/rocegw_memory.h"

namespace rocegw::far {

constexpr size_t kMostDonors = 64;
// Limit of a session whose donors the fleet names, those that come later included.
constexpr size_t kMostFleetDonors = 16;
constexpr uint32_t kMostReplicas = 4;
// A slab has one more while a replica moves from a draining donor.
constexpr uint32_t kMostCopies = kMostReplicas + 1;

struct Settings {
  struct Donor {
    std::string host;
    std::string port;
    std::string failure_domain = {};  // empty: the donor is a domain of its own
    std::string name = {};            // in the fleet: "gateways/G/donors/D"
  };
  std::vector<Donor> donors;
  // The agent that answers in this folder names the donors; empty: they are named above.
  std::string donors_dir;
  std::string tenant;
  uint64_t slabs = 0;
  uint32_t replicas = 1;
  MergeLimits merge;
  bool chain = true;
  uint32_t most_chained = 32;
  uint64_t window_bytes = 0;
  uint64_t pool_bytes = 0;
  uint64_t copy_limit_bytes = 0;
  uint64_t most_queued_bytes = 0;
  PollPolicy polling;
  uint32_t pollers = 1;  // 0: one for each donor
  uint32_t timeout_ms = 0;
  uint32_t connect_timeout_ms = 0;
  std::string disk_path;  // empty: no disk copy
  uint64_t disk_queue_bytes = 0;
  CopyUse disk_use = CopyUse::kStart;
  // The session outlives the program at its donors. `save_placement` replaces the placement that a
  // later process continues with, and returns when it survives this process; any thread, one at a
  // time. Without, the session ends with the program. Not together with a disk copy.
  std::function<Status(const std::string& placement)> save_placement;
  // Placement of an earlier process, and ranges of the space that have data. Other pages are of no
  // use to the program.
  std::optional<Placement> kept;
  std::vector<CopyFile::Range> kept_data;
  bool brief = false;  // the program ends without closing the session
  int cancel_fd = -1;  // readable: the session need not be opened any more

  // Numbers the failure domains of the donors.
  std::vector<uint32_t> Domains() const;
  // Returns the most donors that the session ever has.
  size_t MostDonors() const;
  // Time within which the donors must be connected and all leases granted.
  std::chrono::milliseconds LongestPlacing() const;
  // The staging buffer takes all that the window admits, and always two of the largest operations.
  uint64_t StagingBytes() const;
};

// `size` is what the caller knows of the structure: at least its first version.
StatusOr<Settings> CheckOptions(const rocegw_memory_options& options, size_t size);

}  // namespace rocegw::far
