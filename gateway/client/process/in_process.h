// SPDX-License-Identifier: Apache-2.0
// Gateway inside this process, if rocegw-run was asked for it (docs/user/in_process.md): a library
// beside this one, loaded at first use only. Any thread; one attach at a time.
#pragma once

#include <cstddef>

#include "gateway/abi/engine.h"

namespace rocegw::client {

// Returns true if ROCEGW_IN_PROCESS is 1: there is no daemon to attach to.
bool GatewayIsInProcess();

// Returns a connected descriptor, or -errno with the reason, one line for display.
int AttachInProcess(char* reason, size_t size);

// Progress function of a gateway that runs on the polling threads: called when a poll finds
// nothing.
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): it begins as nullptr
extern rocegw_engine_progress_function* run_gateway;

}  // namespace rocegw::client
