// SPDX-License-Identifier: Apache-2.0
// What every benchmark that is a program of its own does alike: arguments, the line that says where
// it ran, medians, CPU time. Single threaded.
#pragma once

#include <string>
#include <vector>

namespace rocegw::bench {

struct Arguments {
  int rounds;
  std::string json;  // file for the raw figures; empty: none
  bool realtime = false;
};

// --rounds N, --json FILE, --realtime (round robin scheduling, root: keeps other programs out of
// the measurement on a machine that is not idle). Ends the program with 2 when there is anything
// else, with 1 when it is refused.
Arguments ParseArguments(int argc, char** argv, int default_rounds);

// Processor, cores, kernel, load of the last minute: figures mean nothing without them.
std::string Machine();

// Seconds of CPU that this thread has used.
double ThreadCpuSeconds();
// What ThreadCpuSeconds itself adds between two calls: it is a system call, and takes as long as
// two small operations.
double ThreadCpuClockCost();
// Wall clock.
double Seconds();

double Median(std::vector<double> values);

// Writes `text` to the file of --json, if there is one.
void WriteJson(const Arguments& arguments, const std::string& text);

}  // namespace rocegw::bench
