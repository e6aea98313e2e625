// SPDX-License-Identifier: Apache-2.0
// Failure of the parts of rocegw-probe: thrown where it is found, reported once by main.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "agent/probe_program/probe_lines.h"

namespace rocegw::probe {

struct Failure {
  Failed told;
};

[[noreturn]] inline void Fail(Fault fault, std::string message) {
  throw Failure{{fault, std::move(message)}};
}
// Throws a Failure for a call that has set errno.
[[noreturn]] inline void FailCall(Fault fault, const std::string& call) {
  const int error = errno;
  Fail(fault, call + ": " + std::strerror(error));
}

}  // namespace rocegw::probe
