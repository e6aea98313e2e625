// SPDX-License-Identifier: Apache-2.0
// How something that a command did went: kOk, or the exit code and text for a person (one line, or
// several of which those after the first are indented).
#pragma once

#include <string>

#include "controlplane/cli/exit_code.h"

namespace rocegw::cli {

struct CallResult {
  ExitCode code = kOk;
  std::string text;
  // The machine-readable reason of the server's refusal ("ETAG_MISMATCH"); empty: none came.
  std::string reason;
  bool ok() const { return code == kOk; }
};

}  // namespace rocegw::cli
