// SPDX-License-Identifier: Apache-2.0
// Process without threads that works for the daemon: it has one socket to it, no other descriptor,
// and ignores the signals that a service manager sends to all processes of the service. It has to
// end when the daemon closes its end of the socket.
#pragma once

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::session {

// Starts the process, which runs `run` with its end of a SEQPACKET socket. Returns the daemon's
// end. The process is no child of the daemon, which would have to wait for it. Call before the
// daemon has threads. `name`: of the process (PR_SET_NAME).
StatusOr<UniqueFd> StartThreadlessProcess(const char* name, void (*run)(UniqueFd orders));

}  // namespace rocegw::session
