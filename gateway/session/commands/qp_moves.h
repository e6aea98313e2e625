// SPDX-License-Identifier: Apache-2.0
// Changes of a queue pair's state: what MODIFY_QP asks for, and what requests of the connection
// manager bring about along the way. Every function calls `done` exactly once with an errno, before
// it returns or when the worker has answered; until then the session works on no other request.
// Control thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/cm/cm_engine.h"
#include "gateway/session/objects/objects.h"
#include "gateway/verbs/types.h"

namespace rocegw::session {

class ClientSession;

using MoveDone = std::function<void(int error)>;
// To be called `missing` times, for several that are under way at once; the first error counts.
MoveDone WhenAll(int missing, MoveDone done);

struct QpMove {
  rocegw_modify_qp asked{};
  verbs::QpAttributes to;
  std::optional<cm::DataPath> path;  // of one that connects
};

void MoveQp(ClientSession& session, const rocegw_modify_qp& asked, MoveDone done);

// Moves of a connected queue pair with the attributes that the connection manager knows, the first
// `told` of which are done.
struct IdMoves {
  std::array<QpMove, 3> all;
  size_t count = 0;
  size_t told = 0;
};
struct OwnDepths {
  uint8_t responder_resources;
  uint8_t initiator_depth;
};
// For the two below: what waits for nobody, and the errno; nothing: FinishMoves has the rest to do.
std::optional<int> BeginInit(ClientSession& session, const CmId& id, uint32_t qp, IdMoves& moves);
std::optional<int> BeginReady(ClientSession& session, const CmId& id, uint32_t qp,
                              const OwnDepths* depths, IdMoves& moves);
void FinishMoves(ClientSession& session, const IdMoves& moves, MoveDone done);

// A connected queue pair of an id: from RESET to INIT; from INIT, through it again and RTR, to RTS.
// `qp` is the daemon's handle. What waits for nobody allocates nothing.
template <typename Done>
void InitQpOf(ClientSession& session, const CmId& id, uint32_t qp, Done done) {
  IdMoves moves;
  const std::optional<int> error = BeginInit(session, id, qp, moves);
  error ? done(*error) : FinishMoves(session, moves, std::move(done));
}
// depths nullptr: as the connection manager has them.
template <typename Done>
void ReadyQpOf(ClientSession& session, const CmId& id, uint32_t qp, const OwnDepths* depths,
               Done done) {
  IdMoves moves;
  const std::optional<int> error = BeginReady(session, id, qp, depths, moves);
  error ? done(*error) : FinishMoves(session, moves, std::move(done));
}
// To ERR; what is asked of its worker afterwards finds it there.
void BreakQp(ClientSession& session, uint32_t qp);

}  // namespace rocegw::session
