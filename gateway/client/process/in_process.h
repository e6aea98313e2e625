// SPDX-License-Identifier: Apache-2.0
// The gateway inside of this process, where rocegw-run was asked for one (docs/user/in_process.md):
// a library beside this one, loaded at first use and never before. Any thread; attaching one at a
// time.
#pragma once

#include <cstddef>

#include "gateway/abi/engine.h"

namespace rocegw::client {

// ROCEGW_IN_PROCESS is 1: there is no daemon to be attached to.
bool GatewayIsInProcess();

// A connected descriptor, or -errno with the reason, one line for a person.
int AttachInProcess(char* reason, size_t size);

// Where the gateway runs on the threads that poll: its turn, when a poll has found nothing.
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): it begins as nullptr
extern rocegw_engine_progress_function* run_gateway;

}  // namespace rocegw::client
