// SPDX-License-Identifier: Apache-2.0
// Completion of command lines: the shells' scripts call `rocegwctl __complete WORD...` for the
// candidates at the cursor. Names come from the server, with a short timeout.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "controlplane/cli/program.h"

namespace rocegw::cli {

// `words`: the command line up to the cursor without the program's name; the last one is incomplete
// and may be empty.
std::vector<std::string> Completions(const CLI::App& app, Program& program,
                                     const std::vector<std::string>& words);

}  // namespace rocegw::cli
