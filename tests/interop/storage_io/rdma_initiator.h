// SPDX-License-Identifier: Apache-2.0
// Initiator over RDMA. It keeps its event channel and connects again whenever the connection ends.
#pragma once

#include <csignal>

#include "tests/interop/storage_io/options.h"

namespace rocegw::storage_io {

// Runs for the time of the options, or until *stop is set. Returns the exit status: 1 if a block
// was wrong.
int RunRdmaInitiator(const Options& options, const volatile std::sig_atomic_t* stop);

}  // namespace rocegw::storage_io
