// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/commands/qp_moves.h"

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "gateway/session/client_session.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/cm/cm_records.h"
#include "gateway/session/commands/qp_attributes.h"
#include "gateway/verbs/qp_state.h"

namespace rocegw::session {
namespace {

constexpr size_t kConnecting = 1;  // index of the connecting move in BeginReady

// Returns true if the worker need not be asked, since every reason for a refusal is known here. A
// queue pair that failed meanwhile reports it in memory that only the worker writes.
bool NeedNotAsk(const Qp& qp, const QpMove& move) {
  if (!qp.setting_up || (move.asked.attr_mask & verbs::kAttrCurState) != 0) return false;
  const uint32_t published =
      __atomic_load_n(&qp.status.As<rocegw_qp_status>()->state, __ATOMIC_ACQUIRE);
  if (published == static_cast<uint32_t>(verbs::QpState::kError)) return false;
  const verbs::QpState next =
      (move.asked.attr_mask & verbs::kAttrState) != 0 ? move.to.state : qp.state;
  return (next == verbs::QpState::kInit || next == verbs::QpState::kRtr ||
          next == verbs::QpState::kRts) &&
         verbs::CheckTransition(qp.type, qp.state, next, move.asked.attr_mask) == 0;
}

bool Becomes(const QpMove& move, verbs::QpState state) {
  return (move.asked.attr_mask & verbs::kAttrState) != 0 && move.to.state == state;
}

// Updates the control thread's copy with a move that the worker accepted or will accept.
void Remember(const QpMove& move, Qp& qp) {
  if ((move.asked.attr_mask & verbs::kAttrDestQpn) != 0) qp.peer = move.to.dest_qpn;
  if (Becomes(move, verbs::QpState::kReset) || Becomes(move, verbs::QpState::kError))
    qp.drains = false;
  if (!move.path) return;
  const auto& channel = move.path->channel;
  qp.any_order = channel.has_value() && (channel->features & wire::kOptionOrdering) != 0;
  qp.data_path = move.path->reason;
}

// Checked again after each wait, since rules may have changed.
int CheckPeerOf(ClientSession& session, const QpMove& move) {
  if ((move.asked.attr_mask & verbs::kAttrAv) == 0) return 0;
  return session.rules().CheckPeer(session.pool(), move.to.path.destination);
}

// Checks the client's values. Returns 0 or errno.
int Check(ClientSession& session, QpMove& move) {
  const rocegw_modify_qp& asked = move.asked;
  Qp* const qp = session.objects().qps.Find(asked.qp);
  if (qp == nullptr) return EINVAL;
  const Context* const context = session.objects().contexts.Find(qp->context);
  const Device& device = session.devices().SeenBy(session.pool())[context->device];
  auto attributes =
      FromClient(asked.attr, asked.attr_mask, device, session.options().device, qp->peer);
  if (!attributes.ok()) return attributes.status().error();
  move.to = *attributes;
  if (const int error = CheckPeerOf(session, move)) return error;
  if (!qp->was_set_up) session.CountSetUp(asked.qp, Becomes(move, verbs::QpState::kRts));
  return 0;
}

// Checks a state with the attributes that an id's connection gives.
int CheckFor(ClientSession& session, const CmId& id, uint32_t qp, cm::QpState state,
             const OwnDepths* depths, QpMove& move) {
  cm::QpAttributes attributes;
  if (const int error = session.cm().InitQpAttributes(session, id.engine, state, attributes))
    return error;
  const rocegw_cm_qp_attr_reply known = ReplyOf(attributes);
  move.asked.qp = qp;
  move.asked.attr_mask = known.attr_mask;
  move.asked.attr = known.attr;
  if (depths != nullptr && state == cm::QpState::kRtr)
    move.asked.attr.max_dest_rd_atomic = depths->responder_resources;
  if (depths != nullptr && state == cm::QpState::kRts)
    move.asked.attr.max_rd_atomic = depths->initiator_depth;
  return Check(session, move);
}

worker::ModifyQp MessageOf(ClientSession& session, const QpMove& move, const Qp& qp) {
  return {session.objects().LinkedAs(session.id(), qp), qp.qpn, move.asked.attr_mask, move.to,
          move.path ? move.path->channel : std::nullopt};
}

// Sends the move to the worker without waiting. Returns false, and sends nothing, if its answer is
// needed.
bool TellAtOnce(ClientSession& session, const QpMove& move) {
  using Haste = WorkerRequests::Haste;
  Qp& qp = *session.objects().qps.Find(move.asked.qp);
  // A channel is opened before its first message, by either side.
  const bool opens = move.path && move.path->channel;
  if (!NeedNotAsk(qp, move) ||
      !session.workers().TryTell(qp.worker, MessageOf(session, move, qp),
                                 opens ? Haste::kNow : Haste::kWhenAwake)) {
    return false;
  }
  Remember(move, qp);
  if ((move.asked.attr_mask & verbs::kAttrState) != 0) qp.state = move.to.state;
  qp.setting_up = !Becomes(move, verbs::QpState::kRts);
  return true;
}

void TellWorker(ClientSession& session, const QpMove& move, MoveDone done) {
  if (TellAtOnce(session, move)) return done(0);
  Qp& qp = *session.objects().qps.Find(move.asked.qp);
  qp.setting_up = false;
  session.workers().Send(
      qp.worker, MessageOf(session, move, qp),
      [&session, move, done = std::move(done)](const worker::ControlReply& reply) {
        if (reply.error != 0) {
          session.CountSetUp(0, false);
        } else if (Qp* const known = session.objects().qps.Find(move.asked.qp)) {
          Remember(move, *known);
        }
        done(reply.error);
      });
}

std::optional<int> TellThoseAtOnce(ClientSession& session, IdMoves& moves) {
  while (moves.told < moves.count && TellAtOnce(session, moves.all[moves.told])) ++moves.told;
  return moves.told == moves.count ? std::optional<int>(0) : std::nullopt;
}

// Sends all moves at once: the worker handles them in order, and refuses those after a refused one.
void TellTheRest(ClientSession& session, const IdMoves& moves, MoveDone done) {
  const MoveDone each = WhenAll(static_cast<int>(moves.count - moves.told), std::move(done));
  for (size_t i = moves.told; i < moves.count; ++i) TellWorker(session, moves.all[i], each);
}

}  // namespace

MoveDone WhenAll(int missing, MoveDone done) {
  struct Gathering {
    int missing;
    int error;
    MoveDone done;
  };
  return [all = std::make_shared<Gathering>(Gathering{missing, 0, std::move(done)})](int error) {
    if (all->error == 0) all->error = error;
    if (--all->missing == 0) all->done(all->error);
  };
}

void MoveQp(ClientSession& session, const rocegw_modify_qp& asked, MoveDone done) {
  QpMove move;
  move.asked = asked;
  if (const int error = Check(session, move)) return done(error);
  Qp& qp = *session.objects().qps.Find(asked.qp);
  if (verbs::IsXrc(qp.type))
    qp.data_path = "XRC goes as plain RoCEv2: channels know no receive queues";
  const bool connects = qp.type == verbs::QpType::kRc && Becomes(move, verbs::QpState::kRtr) &&
                        (asked.attr_mask & verbs::kAttrAv) != 0;
  if (!connects) return TellWorker(session, move, std::move(done));
  const bool names_peer = (asked.attr_mask & verbs::kAttrDestQpn) != 0;
  // Requests are processed one at a time: only the session's end can happen meanwhile.
  session.cm().WithDataPath(move.to.path, names_peer ? move.to.dest_qpn : qp.peer, qp.ece_allowed,
                            [&session, move, done = std::move(done)](const cm::DataPath& chosen) {
                              if (session.ending()) return done(ESHUTDOWN);
                              if (const int error = CheckPeerOf(session, move)) return done(error);
                              QpMove connecting = move;
                              connecting.path = chosen;
                              TellWorker(session, connecting, done);
                            });
}

std::optional<int> BeginInit(ClientSession& session, const CmId& id, uint32_t qp, IdMoves& moves) {
  moves.count = 1;
  const int error = CheckFor(session, id, qp, cm::QpState::kInit, nullptr, moves.all[0]);
  if (error != 0) return error;
  return TellThoseAtOnce(session, moves);
}

std::optional<int> BeginReady(ClientSession& session, const CmId& id, uint32_t qp,
                              const OwnDepths* depths, IdMoves& moves) {
  const Qp& known = *session.objects().qps.Find(qp);
  if (known.type != verbs::QpType::kRc) return EINVAL;
  // INIT again: the peer's access rights are known only now.
  constexpr std::array kStates = {cm::QpState::kInit, cm::QpState::kRtr, cm::QpState::kRts};
  moves.count = kStates.size();
  for (size_t i = 0; i < moves.count; ++i) {
    if (const int error = CheckFor(session, id, qp, kStates[i], depths, moves.all[i])) return error;
  }
  QpMove& connecting = moves.all[kConnecting];
  const cm::DataPath chosen =
      session.cm().ChooseDataPath(connecting.to.path, connecting.to.dest_qpn, known.ece_allowed);
  if (chosen.wait) return std::nullopt;
  connecting.path = chosen;
  return TellThoseAtOnce(session, moves);
}

void FinishMoves(ClientSession& session, const IdMoves& moves, MoveDone done) {
  const QpMove& connecting = moves.all[kConnecting];
  if (moves.count <= kConnecting || connecting.path)
    return TellTheRest(session, moves, std::move(done));
  const Qp& known = *session.objects().qps.Find(connecting.asked.qp);
  session.cm().WithDataPath(connecting.to.path, connecting.to.dest_qpn, known.ece_allowed,
                            [&session, moves, done = std::move(done)](const cm::DataPath& chosen) {
                              if (session.ending()) return done(ESHUTDOWN);
                              if (const int error = CheckPeerOf(session, moves.all[kConnecting]))
                                return done(error);
                              IdMoves chosen_moves = moves;
                              chosen_moves.all[kConnecting].path = chosen;
                              TellTheRest(session, chosen_moves, done);
                            });
}

void BreakQp(ClientSession& session, uint32_t qp) {
  Qp& known = *session.objects().qps.Find(qp);
  known.setting_up = false;
  verbs::QpAttributes to;
  to.state = verbs::QpState::kError;
  // No worker refuses this move.
  session.workers().Tell(
      known.worker, worker::ModifyQp{session.id(), known.qpn, verbs::kAttrState, to, std::nullopt});
}

}  // namespace rocegw::session
