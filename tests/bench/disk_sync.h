// SPDX-License-Identifier: Apache-2.0
// How often a disk acknowledges writes: what benchmarks of durable writes compare themselves with.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rocegw::bench {

struct Acknowledged {
  double rate = 0;  // per second
  double p50 = 0;   // milliseconds
  double p99 = 0;
};

// Of operations that took so many seconds each and `seconds` together. Ends the program when there
// are none.
Acknowledged Summarise(std::vector<double> times, double seconds);

// One thread for `seconds`: `size` bytes written to a new file, in place or appended, and
// fdatasync. Ends the program when the file cannot be written.
Acknowledged SyncRate(const std::string& file, size_t size, bool in_place, double seconds);

}  // namespace rocegw::bench
