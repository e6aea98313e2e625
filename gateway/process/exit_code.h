// SPDX-License-Identifier: Apache-2.0
// Exit statuses of a daemon. Service managers and scripts rely on the numbers.
#pragma once

namespace rocegw::process {

enum ExitCode : int {
  kOk = 0,           // stopped on request
  kUsage = 2,        // wrong arguments or configuration
  kEnvironment = 3,  // the machine lacks something: rights, an interface, a free port
  kInternal = 70,    // a bug
};

}  // namespace rocegw::process
