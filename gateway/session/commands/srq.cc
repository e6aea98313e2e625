// SPDX-License-Identifier: Apache-2.0
// Commands on shared receive queues: slots and their order are in the session's segment; all queue
// pairs of the queue are on its worker.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/commands/link_configs.h"
#include "gateway/session/objects/queue_memory.h"
#include "gateway/transport/endpoint/endpoint_target.h"
#include "gateway/transport/queues/receive_queue.h"

namespace rocegw::session {
namespace {

// Bytes for payloads: more than for a queue pair, since many share them.
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
  session.workers().Send(srq.worker, worker::UnlinkSrq{session.id(), handle},
                         [&session, handle, context = srq.context,
                          done = std::move(done)](const worker::ControlReply&) {
                           const uint32_t events =
                               session.async_events().Forget(context, ROCEGW_OBJECT_SRQ, handle);
                           session.release().FreeSrq(handle);
                           done(events);
                         });
}

// Heap for receives that queue pairs have taken.
uint64_t HeapOf(uint32_t entries, uint32_t max_sge) {
  return transport::ReceiveQueue::HeapBytes(entries, max_sge);
}

// Endpoints of the queue were charged for its old size when they were made.
uint64_t HeapOfEndpoints(ClientSession& session, uint32_t srq, uint32_t entries, uint32_t max_sge) {
  uint64_t endpoints = 0;
  session.objects().qps.ForEach([&](uint32_t, const Qp& qp) {
    endpoints += qp.srq == srq && qp.type == verbs::QpType::kEndpoint ? 1 : 0;
  });
  return endpoints * transport::EndpointTarget::HeapOfSharedReceives(entries, max_sge);
}

rocegw_srq_reply Describe(const Srq& srq) {
  rocegw_srq_reply reply{};
  reply.entries = srq.entries;
  reply.max_sge = srq.max_sge;
  reply.payload_stride = srq.payload_stride;
  reply.control = srq.control.location();
  reply.order = srq.order.location();
  reply.slots = srq.slots.location();
  reply.payload = srq.payload.location();
  reply.number = srq.number;
  return reply;
}

// Copies the old memory to the same indices. The client must not change it meanwhile; if it does,
// only its own receives suffer.
void CopyQueue(const Srq& srq, uint32_t entries, const shm::Block& order, const shm::Block& slots) {
  const uint32_t stride = rocegw_rq_stride(srq.max_sge);
  std::memcpy(slots.address, srq.slots.address, size_t{srq.entries} * stride);
  const uint32_t producer = shm::LoadAcquire(&srq.control.As<rocegw_srq_control>()->producer);
  const auto* from = srq.order.As<uint32_t>();
  auto* to = order.As<uint32_t>();
  for (uint32_t back = 1; back <= srq.entries; ++back)
    to[(producer - back) & (entries - 1)] = from[(producer - back) & (srq.entries - 1)];
}

// `done` gets an errno. Memory is never returned: slots keep their numbers while they are used.
void Resize(ClientSession& session, uint32_t handle, uint32_t capacity,
            std::function<void(int error)> done) {
  Srq& srq = *session.objects().srqs.Find(handle);
  if (capacity <= srq.entries) {
    srq.capacity = capacity;
    return done(0);
  }
  shm::Block order, slots;
  const WantedBlock wanted[] = {
      {order, shm::Writer::kClient, uint64_t{capacity} * sizeof(uint32_t)},
      {slots, shm::Writer::kClient, uint64_t{capacity} * rocegw_rq_stride(srq.max_sge)},
  };
  tenant::Charge heap;
  const uint64_t bytes =
      HeapOf(capacity, srq.max_sge) + HeapOfEndpoints(session, handle, capacity, srq.max_sge);
  if (const int error = session.quota().Take(Resource::kHeapBytes, bytes, heap)) return done(error);
  if (!AllocateBlocks(session, wanted)) return done(ENOMEM);
  // Also if the worker refuses: the additional charge ends with the queue.
  srq.heap = std::move(heap);
  CopyQueue(srq, capacity, order, slots);
  session.workers().Send(
      srq.worker, worker::ResizeSrq{session.id(), handle, capacity, order.address, slots.address},
      [&session, handle, capacity, order, slots,
       done = std::move(done)](const worker::ControlReply& resized) mutable {
        Srq& known = *session.objects().srqs.Find(handle);
        const bool moved = resized.error == 0;
        session.segment().Free(moved ? known.order : order);
        session.segment().Free(moved ? known.slots : slots);
        if (moved) {
          known.order = order;
          known.slots = slots;
          known.entries = known.capacity = capacity;
        }
        done(resized.error);
      });
}

void Arm(ClientSession& session, uint32_t handle, uint32_t limit,
         std::function<void(int error)> done) {
  session.workers().Send(
      session.objects().srqs.Find(handle)->worker, worker::ArmSrq{session.id(), handle, limit},
      [done = std::move(done)](const worker::ControlReply& armed) { done(armed.error); });
}

}  // namespace

void CreateSrq(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_create_srq>();
  const DeviceBounds& bounds = session.options().device;
  Pd* const pd = session.objects().pds.Find(asked.pd);
  Xrcd* const xrcd = session.objects().xrcds.Find(asked.xrcd);
  Cq* const cq = session.objects().cqs.Find(asked.cq);
  const bool xrc = asked.xrcd != 0;
  if (xrc && (pd == nullptr || xrcd == nullptr || cq == nullptr || xrcd->context != pd->context ||
              cq->context != pd->context))
    return session.exchange().Error(EINVAL);
  if (pd == nullptr || (!xrc && asked.cq != 0) || asked.max_wr == 0 ||
      asked.max_wr > bounds.max_qp_wr || asked.max_sge > bounds.max_sge ||
      asked.limit > asked.max_wr)
    return session.exchange().Error(EINVAL);
  if (const int error = session.rules().CheckDrain(session.pool(), "shared receive queue"))
    return session.exchange().Error(error);
  if (const int error = session.quota().Take(Resource::kSrqs))
    return session.exchange().Error(error);

  auto srq = std::make_unique<Srq>();
  srq->context = pd->context;
  srq->pd = asked.pd;
  srq->worker = xrc ? xrcd->domain->worker : session.worker_choice().Next();
  srq->xrcd = asked.xrcd;
  srq->cq = asked.cq;
  srq->cookie = asked.cookie;
  srq->entries = srq->capacity = srq->payload_slots = std::bit_ceil(asked.max_wr);
  srq->max_sge = std::max(asked.max_sge, 1u);
  srq->payload_stride = PayloadStride(srq->entries, kPayloadOfAll);
  if (const int error = session.quota().Take(Resource::kHeapBytes,
                                             HeapOf(srq->entries, srq->max_sge), srq->heap)) {
    session.quota().Give(Resource::kSrqs);
    return session.exchange().Error(error);
  }
  if (xrc) srq->number = session.xrc_domains().TakeNumber();
  if ((xrc && srq->number == 0) || !AllocateSrq(session, *srq)) {
    session.xrc_domains().GiveNumber(srq->number);
    session.quota().Give(Resource::kSrqs);
    return session.exchange().Error(ENOMEM);
  }
  ++pd->users;
  if (xrc) {
    ++xrcd->users;
    ++cq->users;
  }

  const WorkerIndex worker = srq->worker;
  rocegw_srq_reply reply = Describe(*srq);
  reply.handle = session.objects().srqs.Add(std::move(srq));
  verbs::SrqConfig config =
      SrqConfigOf(session, reply.handle, *session.objects().srqs.Find(reply.handle));
  config.limit = asked.limit;
  session.workers().Send(
      worker, worker::LinkSrq{config}, [&session, reply](const worker::ControlReply& linked) {
        if (linked.error == 0) return session.exchange().Reply(reply);
        DropSrq(session, reply.handle,
                [&session, error = linked.error](uint32_t) { session.exchange().Error(error); });
      });
}

void ModifySrq(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_modify_srq>();
  const Srq* const srq = session.objects().srqs.Find(asked.srq);
  const bool resizes = (asked.mask & ROCEGW_SRQ_MAX_WR) != 0;
  const bool arms = (asked.mask & ROCEGW_SRQ_LIMIT) != 0;
  const uint32_t bound = session.options().device.max_qp_wr;
  if (srq == nullptr || asked.mask == 0 ||
      (asked.mask & ~(ROCEGW_SRQ_MAX_WR | ROCEGW_SRQ_LIMIT)) != 0 ||
      (resizes && (asked.max_wr == 0 || asked.max_wr > bound))) {
    return session.exchange().Error(EINVAL);
  }
  const uint32_t capacity = resizes ? std::bit_ceil(asked.max_wr) : srq->capacity;
  if (arms && asked.limit > capacity) return session.exchange().Error(EINVAL);
  const auto answer = [&session, handle = asked.srq, resizes](int error) {
    if (error != 0) return session.exchange().Error(error);
    if (!resizes) return session.exchange().Done();
    rocegw_srq_reply reply = Describe(*session.objects().srqs.Find(handle));
    reply.handle = handle;
    session.exchange().Reply(reply);
  };
  Resize(session, asked.srq, capacity,
         [&session, handle = asked.srq, limit = asked.limit, arms, answer](int error) {
           if (error != 0 || !arms) return answer(error);
           Arm(session, handle, limit, answer);
         });
}

void QuerySrq(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Srq* const srq = session.objects().srqs.Find(handle);
  if (srq == nullptr) return session.exchange().Error(EINVAL);
  session.workers().Send(srq->worker, worker::QuerySrq{session.id(), handle},
                         [&session, handle](const worker::ControlReply& answer) {
                           if (answer.error != 0) return session.exchange().Error(answer.error);
                           const Srq& known = *session.objects().srqs.Find(handle);
                           rocegw_query_srq_reply reply{};
                           reply.max_wr = known.capacity;
                           reply.max_sge = known.max_sge;
                           reply.limit = answer.srq_limit;
                           session.exchange().Reply(reply);
                         });
}

void DestroySrq(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Srq* const srq = session.objects().srqs.Find(handle);
  if (srq == nullptr) return session.exchange().Error(EINVAL);
  if (srq->users != 0) return session.exchange().Error(EBUSY);
  DropSrq(session, handle, [&session](uint32_t events) { session.exchange().Object(0, events); });
}

}  // namespace rocegw::session
