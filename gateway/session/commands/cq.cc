// SPDX-License-Identifier: Apache-2.0
// Commands on completion queues: one ring of full depth per worker, merged by the library.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <functional>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/commands/link_configs.h"

namespace rocegw::session {
namespace {

void DropCq(ClientSession& session, uint32_t handle, std::function<void(uint64_t events)> done) {
  session.workers().Broadcast(
      [&](WorkerIndex) {
        return worker::UnlinkCq{session.id(), handle};
      },
      [&session, handle, done = std::move(done)](const worker::ControlReply& reply) {
        session.async_events().Forget(session.objects().cqs.Find(handle)->context, ROCEGW_OBJECT_CQ,
                                      handle);
        session.release().FreeCq(handle);
        done(reply.events_reported);
      });
}

uint32_t EntriesFor(uint32_t asked) { return std::bit_ceil(std::max(asked, 16u)); }

uint64_t RingBytes(size_t workers, uint32_t entries) {
  return uint64_t{workers} * entries * sizeof(rocegw_cqe);
}

rocegw_cq_reply Describe(uint32_t handle, const Cq& cq, size_t workers) {
  rocegw_cq_reply reply{};
  reply.handle = handle;
  reply.entries = cq.entries;
  reply.worker_count = static_cast<uint32_t>(workers);
  reply.control = cq.control.location();
  reply.rings = cq.rings.location();
  return reply;
}

// Moves all workers to these rings, unless one has more than `most` completions waiting.
void MoveTo(ClientSession& session, uint32_t handle, uint32_t entries, uint32_t most,
            const shm::Block& rings, std::function<void(int error)> done) {
  session.workers().Broadcast(
      [&](WorkerIndex w) {
        return worker::ResizeCq{session.id(), handle, entries, most,
                                rings.As<rocegw_cqe>() + size_t{w} * entries};
      },
      [done = std::move(done)](const worker::ControlReply& moved) { done(moved.error); });
}

struct Resizing {
  uint32_t cq = 0;
  uint32_t entries = 0;  // entries of the new rings
  uint32_t asked = 0;    // requested by the client: at most `entries`
  bool fresh = false;    // the new rings differ from the current ones
  shm::Block rings;
};

void Refuse(ClientSession& session, Resizing to, int error) {
  if (to.fresh) session.segment().Free(to.rings);
  session.exchange().Error(error == ENOSPC ? EINVAL : error);
}

void Resize(ClientSession& session, const Resizing& to) {
  MoveTo(session, to.cq, to.entries, to.asked, to.rings, [&session, to](int error) {
    Cq& known = *session.objects().cqs.Find(to.cq);
    if (error == 0) {
      if (to.fresh) session.segment().Free(known.rings);
      known.rings = to.rings;
      known.entries = to.entries;
      return session.exchange().Reply(Describe(to.cq, known, session.workers().worker_count()));
    }
    // A worker has more completions than fit: workers that have moved return to the old rings,
    // which fit all of them.
    MoveTo(session, to.cq, known.entries, known.entries, known.rings,
           [&session, to, error](int) { Refuse(session, to, error); });
  });
}

}  // namespace

void CreateCq(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_create_cq>();
  Objects& objects = session.objects();
  CompletionChannel* const channel = objects.channels.Find(asked.channel);
  if (objects.contexts.Find(asked.context) == nullptr || asked.entries == 0 ||
      asked.entries > session.options().device.max_cqe ||
      (asked.channel != 0 && channel == nullptr)) {
    return session.exchange().Error(EINVAL);
  }
  if (channel != nullptr && channel->context != asked.context)
    return session.exchange().Error(EINVAL);
  if (const int error = session.quota().Take(Resource::kCqs))
    return session.exchange().Error(error);

  const size_t workers = session.workers().worker_count();
  auto cq = std::make_unique<Cq>();
  cq->context = asked.context;
  cq->entries = EntriesFor(asked.entries);
  cq->channel = asked.channel;
  cq->cookie = asked.cookie;
  constexpr size_t kConsumerLine = ROCEGW_CACHE_LINE;
  auto control =
      session.Allocate(shm::Writer::kClient, sizeof(rocegw_cq_control) + workers * kConsumerLine);
  auto rings = session.Allocate(shm::Writer::kDaemon, RingBytes(workers, cq->entries));
  if (!control.ok() || !rings.ok()) {
    if (control.ok()) session.segment().Free(*control);
    if (rings.ok()) session.segment().Free(*rings);
    session.quota().Give(Resource::kCqs);
    return session.exchange().Error(ENOMEM);
  }
  cq->control = *control;
  cq->rings = *rings;
  if (channel != nullptr) ++channel->users;

  const Cq& made = *cq;
  const uint32_t handle = objects.cqs.Add(std::move(cq));
  const rocegw_cq_reply reply = Describe(handle, made, workers);
  session.workers().Broadcast(
      [&](WorkerIndex w) { return worker::LinkCq{CqConfigOf(session, handle, made, w)}; },
      [&session, handle, reply](const worker::ControlReply& linked) {
        if (linked.error == 0) return session.exchange().Reply(reply);
        DropCq(session, handle,
               [&session, error = linked.error](uint64_t) { session.exchange().Error(error); });
      });
}

void ResizeCq(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_resize_cq>();
  Cq* const cq = session.objects().cqs.Find(asked.cq);
  if (cq == nullptr || asked.entries == 0 || asked.entries > session.options().device.max_cqe)
    return session.exchange().Error(EINVAL);
  const uint32_t entries = EntriesFor(asked.entries);
  Resizing to{asked.cq, entries, asked.entries, entries != cq->entries, cq->rings};
  if (to.fresh) {
    auto rings = session.Allocate(shm::Writer::kDaemon,
                                  RingBytes(session.workers().worker_count(), entries));
    if (!rings.ok()) return session.exchange().Error(ENOMEM);
    to.rings = *rings;
  }
  // First moves to the current rings with the new limit: completions of requests posted before the
  // call are then visible, and no worker has to move back for them. Rings are larger than programs
  // ask for, but a request for fewer entries than waiting completions fails, as with other
  // providers.
  MoveTo(session, asked.cq, cq->entries, std::min(asked.entries, cq->entries), cq->rings,
         [&session, to](int error) {
           if (error != 0) return Refuse(session, to, error);
           Resize(session, to);
         });
}

void ModerateCq(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_moderate_cq>();
  Cq* const cq = session.objects().cqs.Find(asked.cq);
  if (cq == nullptr) return session.exchange().Error(EINVAL);
  if (cq->moderation == nullptr) cq->moderation = std::make_unique<verbs::CqModeration>();
  cq->moderated = {asked.count, asked.period};
  session.workers().Broadcast(
      [&](WorkerIndex) {
        return worker::ModerateCq{session.id(), asked.cq, cq->moderation.get(), asked.count,
                                  Microseconds(asked.period)};
      },
      [&session](const worker::ControlReply& told) { session.exchange().Answer(told.error); });
}

void DestroyCq(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Cq* const cq = session.objects().cqs.Find(handle);
  if (cq == nullptr) return session.exchange().Error(EINVAL);
  if (cq->users != 0) return session.exchange().Error(EBUSY);
  DropCq(session, handle, [&session](uint64_t events) { session.exchange().Object(0, events); });
}

}  // namespace rocegw::session
