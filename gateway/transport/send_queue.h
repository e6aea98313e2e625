// SPDX-License-Identifier: Apache-2.0
// The send queue of a connected queue pair as its requester keeps it: requests that were fetched
// and validated, in order, until they complete (IBTA 10.8.3). What of a request has left and
// whether it is answered is the requester's knowledge: it marks entries; this class fetches,
// places answers, retires in order, and flushes. Belongs to one worker.
//
// Indices are those of the client's ring, free running: head <= tail.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "gateway/base/growing_ring.h"
#include "gateway/transport/outbox.h"
#include "gateway/verbs/work_request.h"

namespace rocegw::transport {

struct SendEntry {
  verbs::SendRequest request;
  uint32_t ticket = 0;  // of the last placement, when has_ticket
  // Towards a native peer: the PSNs it takes.
  Psn first;
  uint32_t psns = 0;
  // On a channel: payload bytes handed over, bytes of the answer that have come, the receive that
  // it takes at the peer.
  uint32_t sent = 0;
  uint32_t received = 0;
  uint32_t receive = 0;
  uint32_t taken = 0;                                  // when: TicksAt
  verbs::WcStatus failed = verbs::WcStatus::kSuccess;  // completes with it when it is the oldest
  uint8_t attempt = 0;
  bool has_ticket : 1 = false;
  bool started : 1 = false;
  bool answered : 1 = false;     // whole: what it asked for has come
  bool handed_over : 1 = false;  // whole
  bool asked : 1 = false;        // was handed over once, whatever came of it: it may be answered
  bool completed : 1 = false;    // its completion is written, ahead of its turn

  Psn end() const { return first + psns; }

  // Of `taken`: eighteen minutes go by before it comes round.
  static constexpr Duration kTick = Nanoseconds(256);
  static uint32_t TicksAt(TimePoint time) { return static_cast<uint32_t>(time.ns / kTick.ns); }
};
static_assert(sizeof(SendEntry) == 96);

// Where a packet's payload comes from.
struct SendPieces {  // not initialised: made for every packet
  verbs::Piece pieces[verbs::kMaxSge];
  size_t count;
};

class SendQueue {
 public:
  // Once, before anything else: how many requests it holds at once, each of how many pieces.
  void SetSize(uint32_t entries, uint32_t max_sge);
  // Room for such a size, ahead of it.
  void Reserve(uint32_t entries, uint32_t max_sge);
  // Forgets everything that is posted, without completions. False: the client's index is
  // impossible.
  bool Reset(QpContext& qp);

  uint32_t head() const { return head_; }
  uint32_t tail() const { return tail_; }
  bool empty() const { return head_ == tail_; }
  uint32_t size() const { return tail_ - head_; }
  bool Holds(uint32_t index) const { return index - head_ < tail_ - head_; }
  SendEntry& At(uint32_t index) { return ring_[index & mask_]; }
  const SendEntry& At(uint32_t index) const { return ring_[index & mask_]; }
  // Nothing that answers it is still on its way into the client's memory.
  bool IsPlaced(const QpContext& qp, uint32_t index) const {
    return !At(index).has_ticket || qp.IsDone(At(index).ticket);
  }
  std::span<const rocegw_sge> ListOf(uint32_t index) {
    return SgesOf(index).first(At(index).request.sge_count);
  }
  // Requests with an answer of their own, begun and not retired.
  uint32_t reading() const { return reading_; }
  // Nothing that was begun is still open.
  bool drained() const { return head_ == tail_ || !At(head_).started; }

  // Takes the next posted request; one that is bad has `failed` set. False: there is none, or the
  // client broke the rules.
  bool FetchOne(QpContext& qp, Outbox& outbox);
  // Keys and limits of the request at `index`, when it is to go on its way; false: it has failed.
  bool Check(QpContext& qp, uint32_t index);
  // Binds or invalidates what the local request at `index` says, when all before it are complete:
  // it has started then, and is answered or has failed.
  void ActLocally(QpContext& qp, uint32_t index);
  // It does.
  void Start(uint32_t index) {
    At(index).started = true;
    if (At(index).request.has_own_answer()) ++reading_;
  }
  // What was begun begins again, as if nothing of it had been sent.
  void TakeBackBegun();
  // Looks up where bytes [offset, offset + length) of a request's payload are; false: they are not
  // there any more, and the request has failed.
  bool Find(QpContext& qp, uint32_t index, uint32_t offset, uint32_t length, SendPieces& from);
  // Puts them into a packet at `body`, now or by reads queued in front of it.
  void Fill(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset, uint32_t length,
            const SendPieces& from, Psn psn, uint8_t* body, port::TxPacket& packet);
  // Queues the placement of an answer's bytes in the request's buffers; false: they are gone, and
  // the request has failed.
  bool Place(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset,
             std::span<const uint8_t> bytes, AccessTag tag);

  // On a channel: what a READ or an atomic asked for, or a part of it, goes where it belongs.
  // kMalformed: nothing of the kind was asked for. When the place is gone the request has failed.
  enum class Taken : uint8_t { kPart, kWhole, kMalformed };
  Taken TakeReadPart(QpContext& qp, Outbox& outbox, uint32_t index, const wire::ChannelFrame& frame,
                     std::span<const uint8_t> payload);
  Taken TakeAtomicResult(QpContext& qp, Outbox& outbox, uint32_t index, uint64_t original);

  // The request is answered, perhaps before older ones.
  void Answer(const QpContext& qp, uint32_t index);
  // Completes what is answered and placed, oldest first; stops at the first that is not, unless the
  // queue pair's completions may come in any order. Slots are let go of in order in any case. A
  // request that failed takes the queue pair to error once it is the oldest.
  void Retire(QpContext& qp, Outbox& outbox);
  // One request ends, well or not, and the queue pair goes on: of endpoints, whose requests have
  // nothing to do with each other. Then RetireEach.
  void Conclude(const QpContext& qp, uint32_t index, verbs::WcStatus status);
  // As Retire, where a request that failed completes with its status.
  void RetireEach(QpContext& qp, Outbox& outbox);
  // The oldest request without its answer failed with `status`: the queue pair goes to error.
  void Fail(QpContext& qp, verbs::WcStatus status);
  // Completes everything that is posted, now or until the next call: what was answered well, what
  // failed with its status, the rest as flushed. The QP is in the error state. Waits for memory
  // operations, since a program uses its buffers again once they have completed.
  void Flush(QpContext& qp, Outbox& outbox);
  // More tickets are done: requests that waited for memory may complete.
  void OnMemoryDone(QpContext& qp, Outbox& outbox);

 private:
  std::span<rocegw_sge> SgesOf(uint32_t index) {
    return {sges_.get() + static_cast<size_t>(index & mask_) * max_sge_, max_sge_};
  }
  void Complete(QpContext& qp, Outbox& outbox, verbs::WcStatus status);
  void CompleteEarly(QpContext& qp, Outbox& outbox, bool failed_ones);
  void Tell(QpContext& qp, Outbox& outbox, const SendEntry& entry, verbs::WcStatus status);

  // Every message.
  std::unique_ptr<SendEntry[]> ring_;  // by index
  std::unique_ptr<rocegw_sge[]> sges_;
  uint32_t head_ = 0;  // oldest not retired
  uint32_t tail_ = 0;  // next to fetch
  uint16_t mask_ = 0;
  uint16_t reading_ = 0;
  uint8_t max_sge_ = 0;
  bool flushing_ = false;

  // Few.
  uint16_t room_ = 0;  // entries that `ring_` has
  uint32_t flush_ticket_ = 0;
  uint32_t sge_room_ = 0;
  GrowingRing<uint32_t> early_;  // answered, completions in any order: by the ticket they wait for
};

}  // namespace rocegw::transport
