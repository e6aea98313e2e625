// SPDX-License-Identifier: Apache-2.0
// State changes of a queue pair: those of MODIFY_QP, and those that connection manager requests
// cause. Each function calls `done` exactly once with an errno, before it returns or after the
// worker's answer; until then the session handles no other request. Control thread.
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
// Returns a function to be called `missing` times, for concurrent moves; it passes the first error
// to `done`.
MoveDone WhenAll(int missing, MoveDone done);

struct QpMove {
  rocegw_modify_qp asked{};
  verbs::QpAttributes to;
  std::optional<cm::DataPath> path;  // data path of a connecting move
};

void MoveQp(ClientSession& session, const rocegw_modify_qp& asked, MoveDone done);

// Moves of a connected queue pair with the connection manager's attributes. The first `told` moves
// are done.
struct IdMoves {
  std::array<QpMove, 3> all;
  size_t count = 0;
  size_t told = 0;
};
struct OwnDepths {
  uint8_t responder_resources;
  uint8_t initiator_depth;
};
// First part of the next two functions: does what needs no answer. Returns the errno; nothing:
// FinishMoves must do the rest.
std::optional<int> BeginInit(ClientSession& session, const CmId& id, uint32_t qp, IdMoves& moves);
std::optional<int> BeginReady(ClientSession& session, const CmId& id, uint32_t qp,
                              const OwnDepths* depths, IdMoves& moves);
void FinishMoves(ClientSession& session, const IdMoves& moves, MoveDone done);

// Moves a connected queue pair of an id from RESET to INIT, or from INIT through INIT and RTR to
// RTS. `qp` is the daemon's handle. Allocates nothing unless it must wait.
template <typename Done>
void InitQpOf(ClientSession& session, const CmId& id, uint32_t qp, Done done) {
  IdMoves moves;
  const std::optional<int> error = BeginInit(session, id, qp, moves);
  error ? done(*error) : FinishMoves(session, moves, std::move(done));
}
// `depths` nullptr: as the connection manager has them.
template <typename Done>
void ReadyQpOf(ClientSession& session, const CmId& id, uint32_t qp, const OwnDepths* depths,
               Done done) {
  IdMoves moves;
  const std::optional<int> error = BeginReady(session, id, qp, depths, moves);
  error ? done(*error) : FinishMoves(session, moves, std::move(done));
}
// Moves the queue pair to ERR; later messages to its worker find it in that state.
void BreakQp(ClientSession& session, uint32_t qp);

}  // namespace rocegw::session
