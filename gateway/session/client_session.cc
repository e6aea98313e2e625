// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/client_session.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/commands/commands.h"

namespace rocegw::session {
namespace {

// Queue pairs and connections for which a session allocates tables at its start; its tables grow
// beyond that.
constexpr uint32_t kReadyAhead = 4096;
constexpr size_t kListenersAhead = 64;

}  // namespace

ClientSession::ClientSession(SessionId id, const SessionUses& uses, tenant::Pool& pool,
                             std::shared_ptr<tenant::SlotShare> slot, Peer peer, MessageSink& sink,
                             std::shared_ptr<ClientCallQueue> call_queue)
    : id_(id),
      services_(uses.services),
      cm_(uses.cm),
      captures_(uses.captures),
      quota_(services_.rules, services_.heap, pool, std::move(slot)),
      trusted_(pool.settings().trusted),
      peer_(std::move(peer)),
      sink_(sink),
      exchange_(*this, sink, std::move(call_queue), services_.returned_calls,
                services_.ReceiverOf(pool)),
      attached_ns_(WallClockNs()),
      reserve_(uses.reserves.Of(pool)),
      segment_(services_, pool, id_, peer_, reserve_.get()),
      event_limits_(services_, objects_, quota_),
      memory_(services_, pool, peer_),
      links_(id_, services_, quota_, segment_, memory_),
      async_events_(objects_),
      release_(id_, {services_, captures_, objects_, quota_, segment_, links_.doorbells(), memory_,
                     async_events_, reserve_.get()}) {}

void ClientSession::Execute(Request& request) {
  if (const Command command = FindCommand(request.header.type)) return command(*this, request);
  exchange_.Error(ENOSYS);
}

void ClientSession::OnUnanswered(uint32_t type, uint32_t subject, int error) {
  cm_.OnUnanswered(*this, type, subject, error);
}

void ClientSession::AfterReply(TimePoint began) {
  Qp* const qp = objects_.qps.Find(std::exchange(counted_.qp, 0));
  if (qp == nullptr) return;
  qp->set_up = qp->set_up + (ControlLoop::Now() - began);
  if (!counted_.finished) return;
  qp->was_set_up = true;
  pool().set_up().Add(qp->set_up);
}

void ClientSession::ReplyBound(std::string_view what, uint64_t most) {
  pool().CountBoundRefused();
  services_.reports.Tell("QUOTA_EXCEEDED", pool().name(), std::string(what),
                         pool().name() + ": session " + std::to_string(id_.value) + " (" +
                             peer_.comm + ", pid " + std::to_string(peer_.pid) + ") has " +
                             std::to_string(most) + " " + std::string(what) +
                             ", the most that one program may have");
  exchange_.Error(ENOMEM);
}

void ClientSession::LinkToWorkers(const std::function<void(int)>& done) {
  if (links_.linked()) return done(0);
  const Status linked = links_.Link([this, done](int error) {
    if (error != 0) {
      done(error);
      return End("a worker refused the session");
    }
    if (!ending_) {
      segment_.AnnounceTo(sink_);
      links_.AnnounceTo(sink_);
    }
    done(0);
  });
  if (!linked.ok()) return done(linked.error());
  MakeRoomForReady();
}

void ClientSession::UseDevice(std::shared_ptr<device_memory::DeviceBuffer> buffer,
                              std::function<void(int)> done) {
  if (memory_.copier() != nullptr) {
    memory_.AddDevice(std::move(buffer));
    return done(0);
  }
  // Queue pairs that are on channels use frames for sessions without a copier.
  if (objects_.qps.size() != 0 || objects_.groups.size() != 0) return done(EOPNOTSUPP);
  if (const Status started = memory_.StartCopier(pool()); !started.ok())
    return done(started.error());
  services_.workers.Broadcast(
      [this](WorkerIndex) {
        return worker::UseCopier{id_, memory_.copier()};
      },
      [this, buffer = std::move(buffer), done = std::move(done)](const worker::ControlReply&) {
        memory_.AddDevice(buffer);
        done(0);
      });
}

size_t ClientSession::ready_ahead() const {
  return reserve_ == nullptr ? 0 : std::min(reserve_->wanted(), kReadyAhead);
}

size_t ClientSession::ids_ahead() const {
  return reserve_ == nullptr ? 0 : ready_ahead() + kListenersAhead;
}

// Allocates session state for a queue pair before it is taken from the reserve.
void ClientSession::MakeRoomForReady() {
  if (reserve_ == nullptr) return;
  const size_t count = ready_ahead();
  objects_.qps.Reserve(count);
  objects_.qp_by_number.Reserve(count);
  objects_.cm_ids.Reserve(ids_ahead());
  objects_.cm_id_by_qpn.Reserve(count);
  for (size_t w = 0; w < services_.workers.worker_count(); ++w)
    (void)links_.AddDoorbellPage(static_cast<WorkerIndex>(w));
}

void ClientSession::OnAsyncEvent(const worker::AsyncEventRaised& event) {
  if (ending_) return;
  // Data that arrives before the RTU has the same effect as the RTU.
  if (event.event == verbs::AsyncEvent::kCommEstablished) cm_.OnCommEstablished(*this, event.qpn);
  async_events_.Raise(event);
}

void ClientSession::OnPortEvent(uint32_t device, uint32_t type) {
  if (!ending_) async_events_.RaiseOfPort(device, type);
}

SessionRow ClientSession::Row() const {
  SessionRow row;
  row.id = id_.value;
  row.pid = peer_.pid;
  row.uid = peer_.uid;
  row.comm = peer_.comm;
  row.pool = pool().name();
  row.attached_ns = attached_ns_;
  row.contexts = static_cast<uint32_t>(objects_.contexts.size());
  row.pds = static_cast<uint32_t>(objects_.pds.size());
  row.cqs = static_cast<uint32_t>(objects_.cqs.size());
  row.qps = static_cast<uint32_t>(objects_.qps.size());
  row.mrs = static_cast<uint32_t>(objects_.mrs.size());
  row.cm_ids = static_cast<uint32_t>(objects_.cm_ids.size());
  objects_.mrs.ForEach([&](uint32_t, const Mr& mr) {
    if (mr.length != Mr::kEverything) row.registered_bytes += mr.length;
  });
  row.segment_bytes = segment().bytes();
  row.descriptors = DescriptorsOfSession(services_.workers.worker_count()) +
                    kDescriptorsOfPart * (segment().chunk_count() + objects_.regions.size() +
                                          objects_.contexts.size() + objects_.channels.size() +
                                          objects_.cm_channels.size());
  row.waiting_events = event_limits_.backlog().waiting;
  row.library_minor = library_minor_;
  row.memory_way = memory_.way();
  row.trusted = trusted_;
  return row;
}

}  // namespace rocegw::session
