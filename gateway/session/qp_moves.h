// SPDX-License-Identifier: Apache-2.0
// Changes of a queue pair's state: what MODIFY_QP asks for, and what requests of the connection
// manager bring about along the way. Every function calls `done` exactly once with an errno, before
// it returns or when the worker has answered; until then the session works on no other request.
// Control thread.
#pragma once

#include <cstdint>
#include <functional>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/session/objects.h"

namespace rocegw::session {

class ClientSession;

using MoveDone = std::function<void(int error)>;
// To be called `missing` times, for several that are under way at once; the first error counts.
MoveDone WhenAll(int missing, MoveDone done);

void MoveQp(ClientSession& session, const rocegw_modify_qp& asked, MoveDone done);

// A connected queue pair of an id, with the attributes that the connection manager knows: from
// RESET to INIT; from INIT, through it again and RTR, to RTS. `qp` is the daemon's handle.
void InitQpOf(ClientSession& session, const CmId& id, uint32_t qp, MoveDone done);
struct OwnDepths {
  uint8_t responder_resources;
  uint8_t initiator_depth;
};
// nullptr: as the connection manager has them.
void ReadyQpOf(ClientSession& session, const CmId& id, uint32_t qp, const OwnDepths* depths,
               MoveDone done);
// To ERR; what is asked of its worker afterwards finds it there.
void BreakQp(ClientSession& session, uint32_t qp);

}  // namespace rocegw::session
