// SPDX-License-Identifier: Apache-2.0
// What the exit status of a daemon says. Service managers and scripts rely on the numbers.
#pragma once

namespace rocegw::process {

enum ExitCode : int {
  kOk = 0,           // stopped as asked
  kUsage = 2,        // wrong arguments or configuration
  kEnvironment = 3,  // the machine lacks something: rights, an interface, a free port
  kInternal = 70,    // a bug
};

}  // namespace rocegw::process
