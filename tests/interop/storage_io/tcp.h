// SPDX-License-Identifier: Apache-2.0
// The same requests over TCP, as NVMe/TCP carries them: the data of a write follows its command,
// the data of a read its response. Both ends poll their sockets, as SPDK's do. For comparison only:
// a lost connection ends the program.
#pragma once

#include <csignal>

#include "tests/interop/storage_io/options.h"

namespace rocegw::storage_io {

int RunTcpTarget(const Options& options, const volatile std::sig_atomic_t* stop);
int RunTcpInitiator(const Options& options, const volatile std::sig_atomic_t* stop);

}  // namespace rocegw::storage_io
