// SPDX-License-Identifier: Apache-2.0
// Completion of command lines: the shells' scripts ask `rocegwctl __complete WORD...` for what can
// stand where the cursor is. Names come from the server, with little patience.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "controlplane/cli/program.h"

namespace rocegw::cli {

// words: the command line up to the cursor without the program's name; the last one is being
// written and may be empty.
std::vector<std::string> Completions(const CLI::App& app, Program& program,
                                     const std::vector<std::string>& words);

}  // namespace rocegw::cli
