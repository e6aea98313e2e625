// SPDX-License-Identifier: Apache-2.0
// Check of standard output at the end of a program, like GNU's close_stdout. Main thread.
#pragma once

namespace rocegw::process {

// Flushes std::cout and stdout. Returns `status`, or `failed` after a line on stderr if a write
// failed. A reader that has closed the pipe (`| head`) is no failure.
int FinishOutput(const char* program, int status, int failed);

}  // namespace rocegw::process
