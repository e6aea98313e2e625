// SPDX-License-Identifier: Apache-2.0
// The check of standard output at the end of a program, as GNU's close_stdout makes it. Main
// thread.
#pragma once

namespace rocegw::process {

// Writes out what std::cout and stdout hold. Returns `status`; returns `failed` after a line on
// stderr when something could not be written. A reader that has left (`| head`) is no failure.
int FinishOutput(const char* program, int status, int failed);

}  // namespace rocegw::process
