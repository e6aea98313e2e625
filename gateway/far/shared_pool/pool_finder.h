// SPDX-License-Identifier: Apache-2.0
// Finds the donors of a shared block pool through the fleet, and tells the pool when they change:
// asks the agent of this host again and again. Owns a thread; the pool outlives it.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/fleet/announcement.h"
#include "gateway/far/shared_pool/shared_pool.h"

namespace rocegw::far {

class PoolFinder {
 public:
  // Members learn in this time that they should leave a donor, much sooner than it closes
  // (BlockDonor::kLeave).
  static constexpr std::chrono::milliseconds kPause{4000};

  // `folder`: the agent's donors_dir.
  PoolFinder(std::string folder, DonorQuestion question);
  ~PoolFinder();
  PoolFinder(const PoolFinder&) = delete;
  PoolFinder& operator=(const PoolFinder&) = delete;

  // Errors are those of AskAgent.
  StatusOr<std::vector<SharedPoolSettings::Donor>> Find() const;
  // Keeps the pool's donors those of the fleet from now on. While no agent or controller answers,
  // or the pool has too few donors, they stay as they are.
  void Start(SharedPool& pool);

 private:
  void Run(SharedPool& pool) const;

  const std::string folder_;
  const DonorQuestion question_;
  const UniqueFd stop_fd_;
  std::thread thread_;
};

}  // namespace rocegw::far
