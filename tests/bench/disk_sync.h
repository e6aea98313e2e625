// SPDX-License-Identifier: Apache-2.0
// Rate at which a disk acknowledges writes: the baseline of benchmarks of durable writes.
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

// Returns the figures of operations with these durations in seconds, `seconds` in total. Without an
// operation it ends the program.
Acknowledged Summarise(std::vector<double> times, double seconds);

// Writes `size` bytes to a new file, in place or appended, and calls fdatasync, for `seconds` in
// one thread. Ends the program if the file cannot be written.
Acknowledged SyncRate(const std::string& file, size_t size, bool in_place, double seconds);

}  // namespace rocegw::bench
