// SPDX-License-Identifier: Apache-2.0
// What rocegwctl's exit status says. Scripts rely on the numbers.
#pragma once

namespace rocegw::cli {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kNotFound = 3,
  kConflict = 4,
  kDenied = 5,
  kUnavailable = 6,
  kDeadline = 7,
  kConditionFalse = 10,  // asked about a condition (ready?), and it does not hold
};

}  // namespace rocegw::cli
