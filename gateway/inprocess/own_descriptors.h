// SPDX-License-Identifier: Apache-2.0
// A table of descriptors that is not the program's (close_range(2), CLOSE_RANGE_UNSHARE): the
// program cannot close ours by accident, its numbers stay its own, and a child of fork does not
// keep our sockets open. Threads that are started afterwards share it.
#pragma once

#include "gateway/base/status.h"

namespace rocegw::inprocess {

// The calling thread gets a table with nothing but `keep`, and stderr when asked; the other two of
// the first three lead nowhere, so that nothing else gets their numbers.
Status LeaveDescriptorsOfProgram(int keep, bool keep_stderr);

}  // namespace rocegw::inprocess
