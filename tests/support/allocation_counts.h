// SPDX-License-Identifier: Apache-2.0
// Functions that get memory are replaced in a program that uses this, and counted between Start and
// Stop: malloc and its kin (so new, too), mmap, memfd_create. One thread; not with sanitizers,
// which replace them as well.
#pragma once

#include <cstdint>
#include <ostream>

namespace rocegw::testing {

struct AllocationCounts {
  uint64_t allocations = 0;
  uint64_t mappings = 0;
  uint64_t files = 0;  // in memory
  auto operator<=>(const AllocationCounts&) const = default;

  static void Start();
  static void Stop();
  // Since Reset.
  static AllocationCounts Read();
  static void Reset();
};

inline std::ostream& operator<<(std::ostream& out, const AllocationCounts& counts) {
  return out << counts.allocations << " allocations, " << counts.mappings << " mappings, "
             << counts.files << " files";
}

}  // namespace rocegw::testing
