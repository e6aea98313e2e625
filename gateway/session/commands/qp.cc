// SPDX-License-Identifier: Apache-2.0
// Commands on queue pairs: allocates rings and payload areas in the session's segment, a QPN of a
// worker, and a doorbell bit there.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>

#include "gateway/session/client_session.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/commands/link_configs.h"
#include "gateway/session/commands/qp_attributes.h"
#include "gateway/session/commands/qp_moves.h"
#include "gateway/session/objects/queue_memory.h"
#include "gateway/session/state/captures.h"
#include "gateway/transport/endpoint/endpoint_group.h"
#include "gateway/transport/endpoint/endpoint_initiator.h"
#include "gateway/transport/endpoint/endpoint_target.h"
#include "gateway/transport/queues/receive_queue.h"
#include "gateway/transport/queues/send_queue.h"

namespace rocegw::session {
namespace {

// Bytes per queue for inline payloads in the rings.
constexpr uint32_t kPayloadBudget = 64 * 1024;
constexpr uint32_t kListEntry = 16;  // bytes of a scatter list entry in hardware
constexpr uint32_t kLine = ROCEGW_CACHE_LINE;
constexpr uint32_t kGiveUpMs = 5000;

// Only connected queue pairs and endpoints can choose an order.
bool ValidOrdering(const rocegw_create_qp& asked) {
  if (asked.type == ROCEGW_QPT_ENDPOINT) {
    return asked.service_mode == ROCEGW_SERVICE_BY_INITIATOR ||
           asked.service_mode == ROCEGW_SERVICE_UNORDERED;
  }
  const bool plain = asked.service_mode == 0 && asked.any_completion_order == 0;
  return plain || (asked.type == ROCEGW_QPT_RC && asked.service_mode <= ROCEGW_SERVICE_UNORDERED);
}

// Returns true if the queue pair has receives, of its own or of a shared receive queue.
bool HasReceives(const rocegw_create_qp& asked) { return asked.type != ROCEGW_QPT_XRC_SEND; }

bool Valid(const rocegw_create_qp& asked, const DeviceBounds& bounds) {
  const bool type = asked.type == ROCEGW_QPT_RC || asked.type == ROCEGW_QPT_UC ||
                    asked.type == ROCEGW_QPT_UD || asked.type == ROCEGW_QPT_XRC_SEND ||
                    asked.type == ROCEGW_QPT_ENDPOINT;
  return type && asked.max_send_wr <= bounds.max_qp_wr && asked.max_recv_wr <= bounds.max_qp_wr &&
         asked.max_send_sge <= bounds.max_sge && asked.max_recv_sge <= bounds.max_sge &&
         asked.max_inline <= bounds.max_inline && ValidOrdering(asked) &&
         (asked.srq == 0 || HasReceives(asked)) &&
         (asked.on_failure == ROCEGW_EP_CONTINUE ||
          (asked.type == ROCEGW_QPT_ENDPOINT && asked.on_failure == ROCEGW_EP_SUSPEND));
}

// Limit of members of a group, which the worker may look at for one frame.
constexpr uint32_t kMostMembers = transport::EndpointGroup::kMostMembers;

// All members, and all queue pairs of a shared receive queue, are on one worker.
bool MayJoin(const EndpointGroup* group, const Srq* srq, const rocegw_create_qp& asked) {
  if (group == nullptr) return asked.group == 0;
  return asked.type == ROCEGW_QPT_ENDPOINT && asked.pd == group->pd &&
         (srq == nullptr || srq->worker == group->worker);
}

// Heap of the worker for posted requests. Receives of a shared queue are charged to that queue, and
// to endpoints as well, which hold many at a time. A queue pair of the reserve (`ready`) has its
// memory for sends already.
uint64_t HeapOfQueues(const rocegw_create_qp& asked, const Srq* srq, bool ready) {
  const uint32_t sends = std::bit_ceil(std::max(asked.max_send_wr, 1u));
  uint64_t heap = ready ? ReadyReserve::kHeapOfSends
                        : transport::SendQueue::HeapBytes(sends, std::max(asked.max_send_sge, 1u));
  if (asked.type == ROCEGW_QPT_ENDPOINT) heap += transport::EndpointInitiator::HeapBytes(sends);
  if (srq != nullptr) {
    if (asked.type == ROCEGW_QPT_ENDPOINT)
      heap += transport::EndpointTarget::HeapOfSharedReceives(srq->entries, srq->max_sge);
  } else if (asked.type != ROCEGW_QPT_XRC_SEND) {
    heap += transport::ReceiveQueue::HeapBytes(std::bit_ceil(std::max(asked.max_recv_wr, 1u)),
                                               asked.max_recv_sge);
  }
  return heap;
}

bool AllocateQueues(ClientSession& session, Qp& qp, uint32_t sq_payload_stride,
                    uint32_t rq_payload_stride) {
  const WantedBlock wanted[] = {
      {qp.control, shm::Writer::kClient, sizeof(rocegw_qp_control)},
      {qp.status, shm::Writer::kDaemon, sizeof(rocegw_qp_status)},
      {qp.sq, shm::Writer::kClient, uint64_t{qp.sq_entries} * rocegw_sq_stride(qp.max_send_sge)},
      {qp.sq_payload, shm::Writer::kClient, uint64_t{qp.sq_entries} * sq_payload_stride},
      {qp.rq, shm::Writer::kClient, uint64_t{qp.rq_entries} * rocegw_rq_stride(qp.max_recv_sge)},
      {qp.rq_payload, shm::Writer::kDaemon, uint64_t{qp.rq_entries} * rq_payload_stride},
  };
  return AllocateBlocks(session, wanted);
}

// Takes a doorbell bit on the QP's worker. A new page is sent to the worker before the QP.
bool TakeDoorbell(ClientSession& session, Qp& qp) {
  Doorbells& doorbells = session.links().doorbells();
  if (doorbells.NeedsPage(qp.worker) && !session.links().AddDoorbellPage(qp.worker).ok())
    return false;
  const Doorbells::Bit bit = doorbells.Take(qp.worker);
  qp.doorbell_page = bit.page;
  qp.doorbell_bit = bit.bit;
  return true;
}

rocegw_qp_reply Describe(const Qp& qp, const shm::Block& doorbell_page) {
  rocegw_qp_reply reply{};
  reply.qpn = qp.qpn.value;
  reply.sq_entries = qp.sq_entries;
  reply.rq_entries = qp.rq_entries;
  reply.max_send_sge = qp.max_send_sge;
  reply.max_recv_sge = qp.max_recv_sge;
  reply.max_inline = qp.max_inline;
  reply.worker = qp.worker;
  reply.control = qp.control.location();
  reply.status = qp.status.location();
  reply.sq = qp.sq.location();
  reply.sq_payload = qp.sq_payload.location();
  reply.rq = qp.rq.location();
  reply.rq_payload = qp.rq_payload.location();
  reply.sq_payload_stride = qp.sq_payload_stride;
  reply.rq_payload_stride = qp.rq_payload_stride;
  reply.doorbell = doorbell_page.location();
  reply.doorbell_bit = qp.doorbell_bit;
  return reply;
}

// Takes a queue pair from the session's reserve; nullptr: none that fits.
std::unique_ptr<Qp> TakeReady(ClientSession& session, const rocegw_create_qp& asked) {
  constexpr verbs::QpShape kMost = ReadyReserve::kShape;
  if (session.reserve() == nullptr || asked.type != ROCEGW_QPT_RC || asked.srq != 0 ||
      asked.max_send_wr > kMost.sq_entries || asked.max_send_sge > kMost.max_sge ||
      asked.max_recv_sge > kMost.max_sge)
    return nullptr;
  return session.reserve()->TakeQp();
}

// Queue pair that is being created. The destructor returns all that was taken, unless the queue
// pair was finished. No worker knows the queue pair yet, except one of the reserve.
class UnfinishedQp {
 public:
  // Takes a queue pair from the session's reserve, or makes one without a number.
  UnfinishedQp(ClientSession& session, const rocegw_create_qp& asked)
      : session_(session), qp_(TakeReady(session, asked)), ready_(qp_ != nullptr) {
    if (!ready_) qp_ = std::make_unique<Qp>();
  }
  ~UnfinishedQp() {
    if (finished_) return;
    if (queues_) FreeQueues();
    if (counted_) session_.quota().Give(Resource::kQps);
    heap_.Reset();
    if (ready_) {
      session_.reserve()->PutBack(std::move(qp_));
    } else if (qp_->qpn != kInvalidQpn) {
      session_.qpns().Give(qp_->qpn, ControlLoop::Now());
    }
  }
  UnfinishedQp(const UnfinishedQp&) = delete;
  UnfinishedQp& operator=(const UnfinishedQp&) = delete;

  Qp& qp() { return *qp_; }
  // Takes the queue pair from the pool's limits. Returns 0, or the errno to answer with.
  int Charge(const rocegw_create_qp& asked, const Srq* srq) {
    if (const int error = session_.quota().Take(Resource::kQps)) return error;
    counted_ = true;
    return session_.quota().Take(Resource::kHeapBytes, HeapOfQueues(asked, srq, ready_), heap_);
  }
  // Takes a number, unless the queue pair has one. `on`: only a number of that worker.
  bool TakeNumber(std::optional<WorkerIndex> on) {
    if (ready_) return true;
    const auto taken = session_.worker_choice().TakeQpn(on);
    if (!taken) return false;
    qp_->qpn = taken->qpn;
    qp_->worker = taken->worker;
    return true;
  }
  bool TakeMemory() {
    const uint64_t own = OwnMemory();
    queues_ = AllocateQueues(session_, *qp_, qp_->sq_payload_stride, qp_->rq_payload_stride);
    if (!queues_ || !TakeDoorbell(session_, *qp_)) return false;
    from_reserve_ = ready_ && OwnMemory() == own;
    return true;
  }
  // Returns true if queue pair and memory come from the reserve.
  bool from_reserve() const { return from_reserve_; }
  std::unique_ptr<Qp> Finish() {
    finished_ = true;
    qp_->heap = std::move(heap_);
    return std::move(qp_);
  }

 private:
  // Returns the bytes of the session's segment that do not come from the reserve.
  uint64_t OwnMemory() const {
    return session_.segment().bytes() - session_.segment().bytes_of_source();
  }
  void FreeQueues() {
    for (shm::Block* block :
         {&qp_->control, &qp_->status, &qp_->sq, &qp_->sq_payload, &qp_->rq, &qp_->rq_payload}) {
      session_.segment().Free(*block);
    }
  }

  ClientSession& session_;
  std::unique_ptr<Qp> qp_;
  const bool ready_;
  bool counted_ = false;
  bool queues_ = false;
  bool from_reserve_ = false;
  bool finished_ = false;
  tenant::Charge heap_;
};

// Objects that a new queue pair uses.
struct UsedObjects {
  Pd* pd;
  Cq* send_cq;
  Cq* recv_cq;
  Srq* srq;              // nullptr: none
  EndpointGroup* group;  // nullptr: none
};

// Fills in what follows from the request.
void Fill(const rocegw_create_qp& asked, const UsedObjects& used, bool placement, Qp& qp) {
  qp.context = used.pd->context;
  qp.pd = asked.pd;
  qp.send_cq = asked.send_cq;
  qp.recv_cq = asked.recv_cq;
  qp.srq = asked.srq;
  qp.group = asked.group;
  qp.type = static_cast<verbs::QpType>(asked.type);
  qp.cookie = asked.cookie;
  qp.sq_entries = std::bit_ceil(std::max(asked.max_send_wr, 1u));
  const bool has_rq = used.srq == nullptr && asked.type != ROCEGW_QPT_XRC_SEND;
  qp.rq_entries = has_rq ? std::bit_ceil(std::max(asked.max_recv_wr, 1u)) : 0;
  qp.max_send_sge = std::max(asked.max_send_sge, 1u);
  qp.max_recv_sge = has_rq ? std::max(asked.max_recv_sge, 1u) : 0;
  // ibv_wr_atomic_write carries its eight bytes inline, whatever size was requested.
  const bool places = placement && asked.type == ROCEGW_QPT_RC;
  const uint32_t least_inline = places ? std::max(asked.max_inline, 8u) : asked.max_inline;
  const uint32_t inline_stride = (least_inline + kLine - 1) / kLine * kLine;
  qp.sq_payload_stride = std::max(PayloadStride(qp.sq_entries, kPayloadBudget), inline_stride);
  // A program that requests no inline space gets the bytes of a request's list, as on other
  // devices; some programs rely on it (rdma_xclient), and the space exists anyway.
  qp.max_inline =
      std::max(asked.max_inline, std::min(qp.sq_payload_stride, qp.max_send_sge * kListEntry));
  qp.rq_payload_stride = has_rq ? PayloadStride(qp.rq_entries, kPayloadBudget) : 0;
  qp.give_up_ms = asked.give_up_ms == 0 ? kGiveUpMs : asked.give_up_ms;
  qp.suspends_on_failure = asked.on_failure == ROCEGW_EP_SUSPEND;
  qp.service_mode = static_cast<verbs::ServiceMode>(asked.service_mode);
  qp.signal_all = asked.signal_all != 0;
  qp.any_completion_order = asked.any_completion_order != 0;
}

// Makes a queue pair with its number and memory, which no worker knows yet. Returns the errno to
// answer with; then nothing was taken.
StatusOr<std::unique_ptr<Qp>> MakeQp(ClientSession& session, const rocegw_create_qp& asked,
                                     const UsedObjects& used) {
  UnfinishedQp unfinished(session, asked);
  if (const int error = unfinished.Charge(asked, used.srq))
    return Status(error, "queue pair: limit");
  Qp& qp = unfinished.qp();
  Fill(asked, used, session.rules().HasPlacement(session.pool()), qp);
  std::optional<WorkerIndex> on;
  if (used.srq != nullptr) on = used.srq->worker;
  if (used.group != nullptr) on = used.group->worker;
  if (!unfinished.TakeNumber(on) || !unfinished.TakeMemory())
    return Status(ENOMEM, "queue pair: no number or no memory");
  if (session.reserve() != nullptr && asked.type == ROCEGW_QPT_RC)
    unfinished.from_reserve() ? session.reserve()->CountHit() : session.reserve()->CountMiss();
  return unfinished.Finish();
}

rocegw_qp_path PathOf(const Qp& qp, const worker::QpSnapshot& now) {
  const verbs::QpState state = now.attributes.state;
  const bool connected = state == verbs::QpState::kRtr || state == verbs::QpState::kRts ||
                         state == verbs::QpState::kSqd;
  if (!connected) return ROCEGW_PATH_NONE;
  if (qp.type == verbs::QpType::kEndpoint) return ROCEGW_PATH_ANY_ORDER;
  if (!now.on_channel) return ROCEGW_PATH_NATIVE;
  return qp.any_order ? ROCEGW_PATH_ANY_ORDER : ROCEGW_PATH_CHANNEL;
}

// Options apply to channels, which only connected queue pairs have.
void ReplyEce(ClientSession& session, const Qp& qp) {
  const uint32_t offered = qp.type == verbs::QpType::kRc
                               ? session.cm().engine().discovery().own().features &
                                     ~uint32_t{wire::kOptionAuthentication}
                               : wire::kOptionPresent;
  rocegw_ece_reply reply{};
  reply.vendor_id = session.options().gateways.vendor_id;
  reply.options = offered & qp.ece_allowed;
  session.exchange().Reply(reply);
}

}  // namespace

void CreateQp(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_create_qp>();
  if (asked.type == ROCEGW_QPT_XRC_RECV) return CreateXrcTarget(session, asked);
  Objects& objects = session.objects();
  Pd* const pd = objects.pds.Find(asked.pd);
  Cq* const send_cq = objects.cqs.Find(asked.send_cq);
  Cq* const recv_cq = objects.cqs.Find(asked.recv_cq);
  Srq* const srq = objects.srqs.Find(asked.srq);
  EndpointGroup* const group = objects.groups.Find(asked.group);
  const CmId* const id = objects.cm_ids.Find(asked.cm_id);
  if (pd == nullptr || send_cq == nullptr || recv_cq == nullptr ||
      send_cq->context != pd->context || recv_cq->context != pd->context ||
      (asked.srq != 0 && (srq == nullptr || srq->context != pd->context || srq->xrcd != 0)) ||
      (asked.cm_id != 0 && (id == nullptr || asked.type != ROCEGW_QPT_RC)) ||
      !Valid(asked, session.options().device) || !MayJoin(group, srq, asked)) {
    return session.exchange().Error(EINVAL);
  }
  if (group != nullptr && group->users >= kMostMembers)
    return session.ReplyBound("members of a group", kMostMembers);
  if (const int error = session.rules().CheckDrain(session.pool(), "queue pair"))
    return session.exchange().Error(error);
  auto made = MakeQp(session, asked, {pd, send_cq, recv_cq, srq, group});
  if (!made.ok()) return session.exchange().Error(made.status().error());
  std::unique_ptr<Qp> qp = std::move(*made);
  ++pd->users;
  ++send_cq->users;
  ++recv_cq->users;
  if (srq != nullptr) ++srq->users;
  if (group != nullptr) ++group->users;

  rocegw_qp_reply reply =
      Describe(*qp, session.links().doorbells().page(qp->worker, qp->doorbell_page));
  const Qp& kept = *qp;
  reply.handle = objects.qps.Add(std::move(qp));
  objects.qp_by_number.Insert(kept.qpn.value, reply.handle);
  session.CountSetUp(reply.handle, false);
  // Before a worker knows the queue pair, so that a capture sees its first packet.
  session.captures().QpAdded(session.pool().name(), kept.qpn);
  const worker::LinkQp link{QpConfigOf(session, reply.handle, kept)};
  const auto finish = [&session, reply](int error) {
    if (error == 0) return session.exchange().Reply(reply);
    session.CountSetUp(0, false);
    session.release().DropQp(reply.handle,
                             [&session, error](uint32_t) { session.exchange().Error(error); });
  };
  // Its completion queues exist, so no worker can refuse it; shared objects need an answer.
  const bool plain = srq == nullptr && group == nullptr;
  if (plain && session.workers().TryTell(kept.worker, link, WorkerRequests::Haste::kWhenAwake)) {
    objects.qps.Find(reply.handle)->setting_up = true;
    if (id == nullptr) return finish(0);
    return InitQpOf(session, *id, reply.handle, finish);
  }
  const MoveDone each = WhenAll(id != nullptr ? 2 : 1, finish);
  session.workers().Send(kept.worker, link,
                         [each](const worker::ControlReply& linked) { each(linked.error); });
  objects.qps.Find(reply.handle)->setting_up = true;
  if (id != nullptr) InitQpOf(session, *id, reply.handle, each);
}

void ModifyQp(ClientSession& session, Request& request) {
  MoveQp(session, request.As<rocegw_modify_qp>(),
         [&session](int error) { session.exchange().Answer(error); });
}

void QueryEce(ClientSession& session, Request& request) {
  const Qp* const qp = session.objects().qps.Find(request.As<rocegw_object_request>().handle);
  qp == nullptr ? session.exchange().Error(EINVAL) : ReplyEce(session, *qp);
}

void SetEce(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_set_ece>();
  Qp* const qp = session.objects().qps.Find(asked.qp);
  if (qp == nullptr || asked.vendor_id != session.options().gateways.vendor_id)
    return session.exchange().Error(EINVAL);
  qp->ece_allowed = asked.options;
  ReplyEce(session, *qp);
}

void QueryQp(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Qp* const qp = session.objects().qps.Find(handle);
  if (qp == nullptr) return session.exchange().Error(EINVAL);
  session.workers().Send(
      qp->worker, worker::QueryQp{session.objects().LinkedAs(session.id(), *qp), qp->qpn},
      [&session, handle](const worker::ControlReply& answer) {
        if (answer.error != 0 || answer.qps.empty()) {
          return session.exchange().Error(answer.error != 0 ? answer.error : EINVAL);
        }
        const Qp& known = *session.objects().qps.Find(handle);
        rocegw_query_qp_reply reply{};
        reply.attr = ToClient(answer.qps.front().attributes);
        reply.max_send_wr = known.sq_entries;
        reply.max_recv_wr = known.rq_entries;
        reply.max_send_sge = known.max_send_sge;
        reply.max_recv_sge = known.max_recv_sge;
        reply.max_inline = known.max_inline;
        reply.path = PathOf(known, answer.qps.front());
        reply.fetch_operate = answer.qps.front().fetch_operates ? 1 : 0;
        session.exchange().Reply(reply);
      });
}

void DestroyQp(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  if (session.objects().qps.Find(handle) == nullptr) return session.exchange().Error(EINVAL);
  const auto& multicast = session.objects().multicast;
  const auto attached = multicast.lower_bound({handle, wire::Gid{}});
  if (attached != multicast.end() && attached->first == handle)
    return session.exchange().Error(EBUSY);
  session.release().DropQp(handle,
                           [&session](uint32_t events) { session.exchange().Object(0, events); });
}

}  // namespace rocegw::session
