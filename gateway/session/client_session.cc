// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/client_session.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/commands/commands.h"
#include "gateway/tenant/heap_cost.h"

namespace rocegw::session {
namespace {

// Queue pairs and connections for which a session allocates tables at its start; its tables grow
// beyond that.
constexpr uint32_t kReadyAhead = 4096;
constexpr size_t kListenersAhead = 64;
// Limit of waiting events besides those of each object: for multicast groups, of which an id may
// have many.
constexpr size_t kEventsAhead = 1024;

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
      call_queue_(std::move(call_queue)),
      receiver_(services_.ReceiverOf(pool)),
      attached_ns_(WallClockNs()),
      reserve_(uses.reserves.Of(pool)),
      segment_(services_, pool, id_, peer_, reserve_.get()),
      memory_(services_, pool, peer_),
      links_(id_, services_, quota_, segment_, memory_),
      async_events_(objects_),
      release_(id_, {services_, captures_, objects_, quota_, segment_, links_.doorbells(), memory_,
                     async_events_, reserve_.get()}) {}

void ClientSession::OnMessage(std::span<const uint8_t> bytes, int passing) {
  if (ending_) return;
  if (const char* const wrong = CheckForm(bytes)) return End(wrong);
  Request request{DecodeAs<rocegw_request>(bytes), bytes, passing};
  if (!greeted_ && request.header.type != ROCEGW_MSG_HELLO) {
    return End("first message was not a greeting");
  }
  if (greeted_ && request.header.type == ROCEGW_MSG_HELLO) return End("second greeting");
  pending_.Begin(request, ControlLoop::Now());
  if (const Command command = FindCommand(request.header.type)) {
    command(*this, request);
  } else {
    ReplyError(ENOSYS);
  }
  if (request.passing >= 0 && !ending_) DropDescriptor(request.passing);
}

void ClientSession::SendReply(std::span<uint8_t> reply, int fd) {
  auto* const header = reinterpret_cast<rocegw_reply*>(reply.data());
  header->length = static_cast<uint32_t>(reply.size());
  const bool awaited = pending_.awaited();
  if (!pending_.Complete(*header)) return;
  if (ending_) return end_waits_for_pending_.reset();
  segment_.AnnounceTo(sink_);
  if (awaited) sink_.Send(reply, fd);
  AddSetUpTime();
  if (on_ready) on_ready();
}

void ClientSession::AddSetUpTime() {
  Qp* const qp = objects_.qps.Find(std::exchange(counted_.qp, 0));
  if (qp == nullptr) return;
  qp->set_up = qp->set_up + (ControlLoop::Now() - pending_.began());
  if (!counted_.finished) return;
  qp->was_set_up = true;
  pool().set_up().Add(qp->set_up);
}

void ClientSession::ReplyDone() { Reply(rocegw_object_reply{}); }

void ClientSession::Answer(int error) { error == 0 ? ReplyDone() : ReplyError(error); }

void ClientSession::ReplyBound(std::string_view what, uint64_t most) {
  pool().CountBoundRefused();
  services_.reports.Tell("QUOTA_EXCEEDED", pool().name(), std::string(what),
                         pool().name() + ": session " + std::to_string(id_.value) + " (" +
                             peer_.comm + ", pid " + std::to_string(peer_.pid) + ") has " +
                             std::to_string(most) + " " + std::string(what) +
                             ", the most that one program may have");
  ReplyError(ENOMEM);
}

StatusOr<EventPair> ClientSession::NewEventPair(tenant::Charge& descriptors) {
  if (const int error = quota_.Take(Resource::kDescriptors, kDescriptorsOfPart, descriptors))
    return Status(error, "event channel: limit of the pool");
  auto pair = MakeEventPair();
  if (!pair.ok()) {
    descriptors.Reset();
    services_.reports.Tell("QUOTA_EXCEEDED", pool().name(), "descriptors",
                           pool().name() + ": " + pair.status().text());
  }
  return pair;
}

size_t ClientSession::MostEventsAhead() const {
  const size_t objects = objects_.cm_ids.size() + objects_.qps.size() + objects_.cqs.size() +
                         objects_.srqs.size() + objects_.contexts.size();
  return kEventsAhead + objects * tenant::kEventsPerObject;
}

bool ClientSession::EventsPushBack() const { return event_backlog_.waiting > MostEventsAhead(); }

bool ClientSession::LacksEventChannels() {
  const uint32_t most = services_.options.session.event_channels;
  const size_t held =
      objects_.contexts.size() + objects_.channels.size() + objects_.cm_channels.size();
  if (held < most) return false;
  ReplyBound("event channels", most);
  return true;
}

void ClientSession::ReplyError(int error) {
  if (pending_.owed() && !pending_.awaited() && !ending_)
    cm_.OnUnanswered(*this, pending_.type(), pending_.subject(), error);
  rocegw_reply reply{};
  reply.error = error;
  SendReply({reinterpret_cast<uint8_t*>(&reply), sizeof reply}, -1);
}

void ClientSession::ReplyObject(uint32_t handle, uint64_t events_reported, int fd) {
  rocegw_object_reply reply{};
  reply.handle = handle;
  reply.events_reported = static_cast<uint32_t>(events_reported);
  Reply(reply, fd);
}

void ClientSession::RunBlocking(std::function<void()> call, std::function<void()> done) {
  RunBlocking(blocking_, std::move(call), std::move(done));
}

void ClientSession::RunBlocking(uint64_t& pending, std::function<void()> call,
                                std::function<void()> done) {
  pending = services_.returned_calls->Expect([&pending, done = std::move(done)] {
    pending = 0;
    done();
  });
  call_queue_->Run([call = std::move(call), returns = services_.returned_calls, number = pending] {
    call();
    returns->Report(number);
  });
}

void ClientSession::TakeDescriptor(Request& request, const WantedDescriptor& wanted,
                                   std::function<void(PassedDescriptor passed)> done) {
  const int passing = std::exchange(request.passing, -1);
  if (passing < 0) return done({.status = Status(EBADF, "a request without its descriptor")});
  TakeMessage(blocking_, passing, wanted, [this, done = std::move(done)](PassedDescriptor passed) {
    if (passed.received) return done(std::move(passed));
    // The message would be read and executed again.
    ReplyError(passed.status.error());
    End("its descriptor could not be received: " + passed.status.text());
  });
}

void ClientSession::DropDescriptor(int passing) {
  TakeMessage(dropping_, passing, {PassedKind::kNone}, [this](const PassedDescriptor& passed) {
    if (!passed.received) return End("its message could not be received: " + passed.status.text());
    if (on_ready) on_ready();
  });
}

void ClientSession::TakeMessage(uint64_t& pending, int passing, const WantedDescriptor& wanted,
                                std::function<void(PassedDescriptor passed)> done) {
  struct Taken {
    UniqueFd connection;
    PassedDescriptor passed;
    std::vector<UniqueFd> left;  // for the call queue only
  };
  auto taken = std::make_shared<Taken>();
  taken->connection.Reset(::fcntl(passing, F_DUPFD_CLOEXEC, 0));
  if (!taken->connection.valid())
    return done({.status = Status(EMFILE, "the daemon has no descriptor left to read from it")});
  const std::shared_ptr<DescriptorReceiver> receiver = receiver_;
  RunBlocking(
      pending,
      [taken, wanted, receiver] {
        taken->passed = receiver->Take(taken->connection.get(), wanted, taken->left);
        taken->connection.Reset();
      },
      [taken, done = std::move(done)] { done(std::move(taken->passed)); });
  call_queue_->Run([taken, receiver] { receiver->Finish(taken->left); });
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
  row.waiting_events = event_backlog_.waiting;
  row.library_minor = library_minor_;
  row.memory_way = memory_.way();
  row.trusted = trusted_;
  return row;
}

}  // namespace rocegw::session
