// SPDX-License-Identifier: Apache-2.0
// How the parts of rocegw-probe fail: thrown where it is noticed, told once by main.
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
// A call that sets errno failed.
[[noreturn]] inline void FailCall(Fault fault, const std::string& call) {
  const int error = errno;
  Fail(fault, call + ": " + std::strerror(error));
}

}  // namespace rocegw::probe
