// SPDX-License-Identifier: Apache-2.0
// Program started with pipes for its standard streams, no other descriptor of the caller, default
// signal handling, and a process group of its own, so that it can be killed with everything that it
// started. Any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw {

// The caller's ends do not block. Whoever starts the program kills its group and reaps it.
struct PipedProgram {
  pid_t pid = -1;
  UniqueFd input;   // its standard input
  UniqueFd output;  // its standard output
  UniqueFd error;   // its standard error
};

// `words`: the program, looked up in PATH unless it has a slash, and its arguments; not empty.
// `environment`: "NAME=VALUE"; nullptr: that of this process.
StatusOr<PipedProgram> StartWithPipes(const std::vector<std::string>& words,
                                      const std::vector<std::string>* environment);

}  // namespace rocegw
