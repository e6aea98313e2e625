// SPDX-License-Identifier: Apache-2.0
// Result of a command's step: kOk, or the exit code and a text for the user (one line, or several
// of which those after the first are indented).
#pragma once

#include <string>

#include "controlplane/cli/exit_code.h"

namespace rocegw::cli {

struct CallResult {
  ExitCode code = kOk;
  std::string text;
  // Machine-readable reason of the server's refusal ("ETAG_MISMATCH"); empty: none.
  std::string reason;
  bool ok() const { return code == kOk; }
};

}  // namespace rocegw::cli
