// SPDX-License-Identifier: Apache-2.0
// Common parts of benchmark programs: arguments, a description of the machine, medians, CPU time.
// Single-threaded.
#pragma once

#include <string>
#include <vector>

namespace rocegw::bench {

struct Arguments {
  int rounds;
  std::string json;  // file for the raw figures; empty: none
  bool realtime = false;
};

// Parses --rounds N, --json FILE and --realtime (round-robin scheduling, needs root: keeps other
// programs of a busy machine out of the measurement). Ends the program with status 2 on any other
// argument, with status 1 if the kernel refuses --realtime.
Arguments ParseArguments(int argc, char** argv, int default_rounds);

// Returns processor, cores, kernel and load of the last minute as one line, to print with figures.
std::string Machine();

// Returns the CPU seconds that this thread has used.
double ThreadCpuSeconds();
// Returns the seconds that ThreadCpuSeconds itself adds between two calls: the system call takes as
// long as two small operations.
double ThreadCpuClockCost();
// Returns the wall clock in seconds.
double Seconds();

double Median(std::vector<double> values);

// Writes `text` to the file of --json, if there is one.
void WriteJson(const Arguments& arguments, const std::string& text);

}  // namespace rocegw::bench
