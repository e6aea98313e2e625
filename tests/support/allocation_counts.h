// SPDX-License-Identifier: Apache-2.0
// Counts of memory allocations between Start and Stop. Replaces malloc and its relatives (and so
// new), mmap and memfd_create in programs that link it. One thread; not with sanitizers, which
// replace the same functions.
#pragma once

#include <cstdint>
#include <ostream>

namespace rocegw::testing {

struct AllocationCounts {
  uint64_t allocations = 0;
  uint64_t mappings = 0;
  uint64_t files = 0;  // memfd_create
  auto operator<=>(const AllocationCounts&) const = default;

  static void Start();
  static void Stop();
  // Counts since Reset.
  static AllocationCounts Read();
  static void Reset();
};

inline std::ostream& operator<<(std::ostream& out, const AllocationCounts& counts) {
  return out << counts.allocations << " allocations, " << counts.mappings << " mappings, "
             << counts.files << " files";
}

}  // namespace rocegw::testing
