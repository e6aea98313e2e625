// SPDX-License-Identifier: Apache-2.0
// Exit statuses of rocegwctl. Scripts rely on the numbers.
#pragma once

namespace rocegw::cli {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,  // refused by the server with a reason, or failed here
  kUsage = 2,
  kNotFound = 3,
  kConflict = 4,  // exists already, or was changed concurrently
  kDenied = 5,
  kUnavailable = 6,      // the server does not answer
  kDeadline = 7,         // no answer, or the awaited state did not come, in time
  kPartlyFailed = 8,     // only some of several things were done
  kWarned = 9,           // doctor: warnings only
  kConditionFalse = 10,  // the queried condition (ready? in sync? intact?) does not hold
};

}  // namespace rocegw::cli
