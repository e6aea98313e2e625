// SPDX-License-Identifier: Apache-2.0
// Target over RDMA, in the pattern of NVMe over Fabrics: a command by SEND, the block by RDMA WRITE
// or READ, the response by SEND. It outlives its device: it keeps the event channel and the device
// list, and listens again when a device of that name works again.
#pragma once

#include <csignal>

#include "tests/interop/storage_io/options.h"

namespace rocegw::storage_io {

// Serves until *stop is set. Returns the exit status.
int RunRdmaTarget(const Options& options, const volatile std::sig_atomic_t* stop);

}  // namespace rocegw::storage_io
