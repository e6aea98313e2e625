// SPDX-License-Identifier: Apache-2.0
// What rocegwctl's exit status says. Scripts rely on the numbers.
#pragma once

namespace rocegw::cli {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,  // refused by the server for a reason that it tells, or failed here
  kUsage = 2,
  kNotFound = 3,
  kConflict = 4,  // exists already, or was changed by another meanwhile
  kDenied = 5,
  kUnavailable = 6,      // nobody answers
  kDeadline = 7,         // no answer, or what was waited for did not come, in time
  kPartlyFailed = 8,     // some of several things were done
  kWarned = 9,           // looked for trouble, and found only what may become some
  kConditionFalse = 10,  // asked about a condition (ready? in sync? intact?), and it does not hold
};

}  // namespace rocegw::cli
