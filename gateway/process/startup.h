// SPDX-License-Identifier: Apache-2.0
// What every daemon does before anything else. Main thread, before any other exists.
#pragma once

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::process {

// SIGTERM, SIGINT and SIGHUP are read from this descriptor (signalfd(2), non-blocking) from now on.
// All later threads inherit that they are blocked. SIGPIPE is ignored.
StatusOr<UniqueFd> BlockSignals();

// To the hard limit: the soft one is low for the sake of programs that use select(2), which the
// daemons are not.
void RaiseDescriptorLimit();

}  // namespace rocegw::process
