// SPDX-License-Identifier: Apache-2.0
// Separate descriptor table (close_range(2), CLOSE_RANGE_UNSHARE): the program cannot close our
// descriptors by accident, its numbers stay free, and a forked child does not keep our sockets
// open. Threads that are started afterwards share the table.
#pragma once

#include "gateway/base/status.h"

namespace rocegw::inprocess {

// Gives the calling thread a table with only `keep`, and stderr on request; the others of the first
// three lead nowhere, so that no other file gets their numbers.
Status LeaveDescriptorsOfProgram(int keep, bool keep_stderr);

}  // namespace rocegw::inprocess
