// SPDX-License-Identifier: Apache-2.0
// First steps of every daemon. Main thread, before any other thread exists.
#pragma once

#include <initializer_list>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::process {

// Blocks SIGTERM, SIGINT and SIGHUP and returns a descriptor that reads them (signalfd(2),
// non-blocking). Later threads inherit the mask. SIGPIPE is ignored. `more`: further signals.
StatusOr<UniqueFd> BlockSignals(std::initializer_list<int> more = {});

// Raises the limit to the hard limit: the soft one is low for programs that use select(2), which
// the daemons do not use.
void RaiseDescriptorLimit();

}  // namespace rocegw::process
