// SPDX-License-Identifier: Apache-2.0
// Counts of the agent about donors, for other threads.
#pragma once

#include <atomic>
#include <cstdint>

namespace rocegw::agent {

struct DonorCounters {
  std::atomic<uint64_t> donors{0};  // announced now
  std::atomic<uint64_t> refused_files{0};
  std::atomic<uint64_t> reports{0};
  std::atomic<uint64_t> failed_reports{0};
  std::atomic<uint64_t> questions{0};
  std::atomic<uint64_t> refused_questions{0};
};

}  // namespace rocegw::agent
