// SPDX-License-Identifier: Apache-2.0
// Runs a program with a deadline and bounded output. The program has its own process group, which
// is killed at the deadline with everything that it started, unless that made a group of its own.
// Blocks; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace rocegw::migration {

struct ProgramLimits {
  std::chrono::milliseconds deadline{60'000};
  size_t most_output = 64 << 10;  // a program that writes more is killed
  // Readable when the program has to end at once; -1: never.
  int stop_fd = -1;
};

struct ProgramRun {
  std::string output;      // standard output
  std::string last_error;  // end of its standard error, at most 4 KiB
  int exit_status = -1;    // -1: it did not exit by itself
  bool timed_out = false;
  bool too_much = false;
  bool stopped = false;  // by `stop_fd`
  std::string problem;   // why it could not be run; empty: it was
};

// `words`: the program, looked up in PATH, and its arguments. `input`: its standard input.
ProgramRun RunProgram(const std::vector<std::string>& words, const std::string& input,
                      const ProgramLimits& limits);

}  // namespace rocegw::migration
