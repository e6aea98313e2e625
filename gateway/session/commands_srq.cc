// SPDX-License-Identifier: Apache-2.0
// Shared receive queues: slots and their order in the session's segment, on the worker that gets
// all queue pairs of it.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <functional>
#include <memory>

#include "gateway/session/client_session.h"
#include "gateway/session/commands.h"
#include "gateway/session/queue_memory.h"

namespace rocegw::session {
namespace {

// Bytes for payloads: more than a queue pair has, since many share it.
constexpr uint32_t kPayloadOfAll = 256 * 1024;

bool AllocateSrq(ClientSession& session, Srq& srq) {
  const WantedBlock wanted[] = {
      {srq.control, shm::Writer::kClient, sizeof(rocegw_srq_control)},
      {srq.order, shm::Writer::kClient, uint64_t{srq.entries} * sizeof(uint32_t)},
      {srq.slots, shm::Writer::kClient, uint64_t{srq.entries} * rocegw_rq_stride(srq.max_sge)},
      {srq.payload, shm::Writer::kDaemon, uint64_t{srq.entries} * srq.payload_stride},
  };
  return AllocateBlocks(session, wanted);
}

void DropSrq(ClientSession& session, uint32_t handle, std::function<void(uint32_t events)> done) {
  const Srq& srq = *session.objects().srqs.Find(handle);
  session.services().workers.Send(srq.worker, worker::UnlinkSrq{session.id(), handle},
                                  [&session, handle, context = srq.context,
                                   done = std::move(done)](const worker::ControlReply&) {
                                    const uint32_t events = session.ForgetAsyncEvents(
                                        context, ROCEGW_OBJECT_SRQ, handle);
                                    session.FreeSrq(handle);
                                    done(events);
                                  });
}

}  // namespace

void CreateSrq(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_create_srq>();
  Services& services = session.services();
  const DeviceBounds& bounds = services.options.device;
  Pd* const pd = session.objects().pds.Find(asked.pd);
  if (pd == nullptr || asked.max_wr == 0 || asked.max_wr > bounds.max_qp_wr ||
      asked.max_sge > bounds.max_sge || asked.limit > asked.max_wr)
    return session.ReplyError(EINVAL);
  if (const int error = services.CheckDrain(session.pool(), "shared receive queue"))
    return session.ReplyError(error);
  if (const int error = session.Take(Resource::kSrqs)) return session.ReplyError(error);

  auto srq = std::make_unique<Srq>();
  srq->context = pd->context;
  srq->pd = asked.pd;
  srq->worker = services.NextWorker();
  srq->cookie = asked.cookie;
  srq->entries = std::bit_ceil(asked.max_wr);
  srq->max_sge = std::max(asked.max_sge, 1u);
  srq->payload_stride = PayloadStride(srq->entries, kPayloadOfAll);
  if (!AllocateSrq(session, *srq)) {
    session.Give(Resource::kSrqs);
    return session.ReplyError(ENOMEM);
  }
  ++pd->users;

  rocegw_srq_reply reply{};
  reply.entries = srq->entries;
  reply.max_sge = srq->max_sge;
  reply.payload_stride = srq->payload_stride;
  reply.control = srq->control.location();
  reply.order = srq->order.location();
  reply.slots = srq->slots.location();
  reply.payload = srq->payload.location();
  verbs::SrqConfig config;
  config.session = session.id();
  config.cookie = srq->cookie;
  config.entries = srq->entries;
  config.stride = rocegw_rq_stride(srq->max_sge);
  config.limit = asked.limit;
  config.control = srq->control.As<rocegw_srq_control>();
  config.order = srq->order.address;
  config.slots = srq->slots.address;
  const WorkerIndex worker = srq->worker;
  reply.handle = config.srq_handle = session.objects().srqs.Add(std::move(srq));
  services.workers.Send(
      worker, worker::LinkSrq{config}, [&session, reply](const worker::ControlReply& linked) {
        if (linked.error == 0) return session.Reply(reply);
        DropSrq(session, reply.handle,
                [&session, error = linked.error](uint32_t) { session.ReplyError(error); });
      });
}

void ModifySrq(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_modify_srq>();
  const Srq* const srq = session.objects().srqs.Find(asked.srq);
  if (srq == nullptr || asked.mask != ROCEGW_SRQ_LIMIT || asked.limit > srq->entries)
    return session.ReplyError(EINVAL);
  session.services().workers.Send(srq->worker, worker::ArmSrq{session.id(), asked.srq, asked.limit},
                                  [&session](const worker::ControlReply& armed) {
                                    armed.error == 0 ? session.ReplyDone()
                                                     : session.ReplyError(armed.error);
                                  });
}

void QuerySrq(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Srq* const srq = session.objects().srqs.Find(handle);
  if (srq == nullptr) return session.ReplyError(EINVAL);
  session.services().workers.Send(srq->worker, worker::QuerySrq{session.id(), handle},
                                  [&session, handle](const worker::ControlReply& answer) {
                                    if (answer.error != 0) return session.ReplyError(answer.error);
                                    const Srq& known = *session.objects().srqs.Find(handle);
                                    rocegw_query_srq_reply reply{};
                                    reply.max_wr = known.entries;
                                    reply.max_sge = known.max_sge;
                                    reply.limit = answer.srq_limit;
                                    session.Reply(reply);
                                  });
}

void DestroySrq(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Srq* const srq = session.objects().srqs.Find(handle);
  if (srq == nullptr) return session.ReplyError(EINVAL);
  if (srq->users != 0) return session.ReplyError(EBUSY);
  DropSrq(session, handle, [&session](uint32_t events) { session.ReplyObject(0, events); });
}

}  // namespace rocegw::session
