// SPDX-License-Identifier: Apache-2.0
// Completion queues: one ring of full depth per worker, merged by the library.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <functional>

#include "gateway/session/client_session.h"
#include "gateway/session/commands.h"

namespace rocegw::session {
namespace {

void DropCq(ClientSession& session, uint32_t handle, std::function<void(uint64_t events)> done) {
  session.services().workers.Broadcast(
      [&](WorkerIndex) {
        return worker::UnlinkCq{session.id(), handle};
      },
      [&session, handle, done = std::move(done)](const worker::ControlReply& reply) {
        session.ForgetAsyncEvents(session.objects().cqs.Find(handle)->context, ROCEGW_OBJECT_CQ,
                                  handle);
        session.FreeCq(handle);
        done(reply.events_reported);
      });
}

}  // namespace

void CreateCq(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_create_cq>();
  Objects& objects = session.objects();
  Services& services = session.services();
  CompletionChannel* const channel = objects.channels.Find(asked.channel);
  if (objects.contexts.Find(asked.context) == nullptr || asked.entries == 0 ||
      asked.entries > services.options.device.max_cqe ||
      (asked.channel != 0 && channel == nullptr)) {
    return session.ReplyError(EINVAL);
  }
  if (channel != nullptr && channel->context != asked.context) return session.ReplyError(EINVAL);
  if (const int error = session.Take(Resource::kCqs)) return session.ReplyError(error);

  const size_t workers = services.workers.worker_count();
  auto cq = std::make_unique<Cq>();
  cq->context = asked.context;
  cq->entries = std::bit_ceil(std::max(asked.entries, 16u));
  cq->channel = asked.channel;
  cq->cookie = asked.cookie;
  constexpr size_t kConsumerLine = ROCEGW_CACHE_LINE;
  auto control =
      session.Allocate(shm::Writer::kClient, sizeof(rocegw_cq_control) + workers * kConsumerLine);
  auto rings = session.Allocate(shm::Writer::kDaemon, workers * cq->entries * sizeof(rocegw_cqe));
  if (!control.ok() || !rings.ok()) {
    if (control.ok()) session.segment().Free(*control);
    if (rings.ok()) session.segment().Free(*rings);
    session.Give(Resource::kCqs);
    return session.ReplyError(ENOMEM);
  }
  cq->control = *control;
  cq->rings = *rings;
  if (channel != nullptr) ++channel->users;

  rocegw_cq_reply reply{};
  reply.entries = cq->entries;
  reply.worker_count = static_cast<uint32_t>(workers);
  reply.control = cq->control.location();
  reply.rings = cq->rings.location();
  const Cq& made = *cq;
  const uint32_t handle = reply.handle = objects.cqs.Add(std::move(cq));
  services.workers.Broadcast(
      [&](WorkerIndex w) {
        verbs::CqConfig config;
        config.session = session.id();
        config.cq_handle = handle;
        config.cookie = made.cookie;
        config.entries = made.entries;
        config.worker_slot = w;
        config.ring = made.rings.As<rocegw_cqe>() + size_t{w} * made.entries;
        config.control = made.control.As<rocegw_cq_control>();
        config.event_fd = channel == nullptr ? -1 : channel->ours.get();
        return worker::LinkCq{config};
      },
      [&session, handle, reply](const worker::ControlReply& linked) {
        if (linked.error == 0) return session.Reply(reply);
        DropCq(session, handle,
               [&session, error = linked.error](uint64_t) { session.ReplyError(error); });
      });
}

void DestroyCq(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Cq* const cq = session.objects().cqs.Find(handle);
  if (cq == nullptr) return session.ReplyError(EINVAL);
  if (cq->users != 0) return session.ReplyError(EBUSY);
  DropCq(session, handle, [&session](uint64_t events) { session.ReplyObject(0, events); });
}

}  // namespace rocegw::session
