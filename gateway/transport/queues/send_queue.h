// SPDX-License-Identifier: Apache-2.0
// Send queue of a connected queue pair as its requester keeps it: requests that were fetched and
// validated, in order, until they complete (IBTA 10.8.3). The requester knows which part of a
// request has left and whether it is answered, and marks entries accordingly. This class fetches,
// places responses, completes in order, and flushes. Belongs to one worker.
//
// Indices are those of the client's ring, free running: head <= tail.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/prefetch.h"
#include "gateway/transport/outbox.h"
#include "gateway/verbs/work_request.h"

namespace rocegw::transport {

struct SendEntry {
  verbs::SendRequest request;
  uint32_t ticket = 0;  // ticket of the last placement, if has_ticket
  // Native peer: the PSNs that the request uses.
  Psn first;
  uint32_t psns = 0;
  // On a channel: payload bytes sent, bytes of the response that have arrived, and the number of
  // the receive that the request takes at the peer.
  uint32_t sent = 0;
  uint32_t received = 0;
  uint32_t receive = 0;
  uint32_t taken = 0;  // time of the fetch (TicksAt)
  // Completes with this status when it is the oldest.
  verbs::WcStatus failed = verbs::WcStatus::kSuccess;
  uint8_t attempt = 0;
  bool has_ticket : 1 = false;
  bool started : 1 = false;
  bool answered : 1 = false;     // all that it requested has arrived
  bool handed_over : 1 = false;  // all frames have left
  bool asked : 1 = false;        // all frames have left at least once, so it may be answered
  bool completed : 1 = false;    // its completion is written, ahead of older ones

  Psn end() const { return first + psns; }

  // Unit of `taken`, which wraps around after eighteen minutes.
  static constexpr Duration kTick = Nanoseconds(256);
  static uint32_t TicksAt(TimePoint time) { return static_cast<uint32_t>(time.ns / kTick.ns); }
};
static_assert(sizeof(SendEntry) == 96);
// Entries lie in memory that begins to hold them when they are fetched.
static_assert(std::is_trivially_destructible_v<SendEntry> &&
              sizeof(SendEntry) % alignof(rocegw_sge) == 0);

// Location of a packet's payload in client memory.
struct SendPieces {  // not initialised: made for every packet
  verbs::Piece pieces[verbs::kMaxSge];
  size_t count;
};

// Whether a packet may refer to its payload instead of holding a copy. A request whose packets
// refer must not complete before they have left. A packet that is sent again is always copied: a
// program that writes to its memory meanwhile would spoil it again and again, until retries are
// exhausted.
enum class PayloadUse : bool { kCopy, kMayRefer };

class SendQueue {
 public:
  // Returns the bytes of heap that a queue of that size takes: all entries with their SGE lists,
  // and their numbers in early_.
  static constexpr uint64_t HeapBytes(uint32_t entries, uint32_t max_sge) {
    return uint64_t{entries} * (LinesOf(max_sge) * sizeof(Line) + sizeof(uint32_t));
  }
  // Sets the number of requests and of pieces (SGEs) of each. Called once, before anything else.
  void SetSize(uint32_t entries, uint32_t max_sge);
  // Allocates memory for that size ahead of SetSize.
  void Reserve(uint32_t entries, uint32_t max_sge);
  // Forgets all posted requests, without completions. Returns false if the client's index is
  // impossible.
  bool Reset(QpContext& qp);

  uint32_t head() const { return head_; }
  uint32_t tail() const { return tail_; }
  bool empty() const { return head_ == tail_; }
  uint32_t size() const { return tail_ - head_; }
  bool Holds(uint32_t index) const { return index - head_ < tail_ - head_; }
  SendEntry& At(uint32_t index) { return *reinterpret_cast<SendEntry*>(LineOf(index)); }
  const SendEntry& At(uint32_t index) const {
    return *reinterpret_cast<const SendEntry*>(LineOf(index));
  }
  // Returns true if no placement of the response into client memory is pending.
  bool IsPlaced(const QpContext& qp, uint32_t index) const {
    return !At(index).has_ticket || qp.IsDone(At(index).ticket);
  }
  std::span<const rocegw_sge> ListOf(uint32_t index) {
    return SgesOf(index).first(At(index).request.sge_count);
  }
  // Returns the number of begun requests with a response of their own that are not retired.
  uint32_t reading() const { return reading_; }
  // Returns true if every request that began is complete.
  bool drained() const { return head_ == tail_ || !At(head_).started; }

  // Prefetch the entry of the next request to fetch, or of the oldest one.
  void PrefetchNext() const { PrefetchEntry(tail_); }
  void PrefetchOldest() const {
    if (!empty()) PrefetchEntry(head_);
  }

  // Fetches the next posted request; a bad one has `failed` set. Returns false if there is none, or
  // if the client broke the rules.
  bool FetchOne(QpContext& qp, Outbox& outbox);
  // Checks keys and limits of the request at `index` before it is sent. Returns false if it has
  // failed.
  bool Check(QpContext& qp, uint32_t index);
  // Executes the local request at `index` (bind or invalidate) once all earlier ones are complete.
  // The request has started then, and is answered or has failed.
  void ActLocally(QpContext& qp, uint32_t index);
  // Marks the request as started.
  void Start(uint32_t index) {
    At(index).started = true;
    if (At(index).request.has_own_answer()) ++reading_;
  }
  // Makes all begun requests begin again, as if nothing of them had been sent.
  void TakeBackBegun();
  // Looks up the location of payload bytes [offset, offset + length). Returns false if they are not
  // accessible any more; the request has failed then.
  bool Find(QpContext& qp, uint32_t index, uint32_t offset, uint32_t length, SendPieces& from);
  // Copies the bytes to `body` in a packet, now or by memory reads that are queued before the
  // packet. With kMayRefer the packet may refer to memory that the gateway has mapped instead.
  void Fill(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset, uint32_t length,
            const SendPieces& from, Psn psn, uint8_t* body, port::TxPacket& packet, PayloadUse use);
  // Queues the placement of response bytes in the request's buffers. Returns false if the buffers
  // are not accessible any more; the request has failed then.
  bool Place(QpContext& qp, Outbox& outbox, uint32_t index, uint32_t offset,
             std::span<const uint8_t> bytes, AccessTag tag);

  // On a channel: take a part of a READ response, or an atomic's result, into the request's
  // buffers. kMalformed: the request asked for nothing of the kind. If the buffers are not
  // accessible any more, the request has failed.
  enum class Taken : uint8_t { kPart, kWhole, kMalformed };
  Taken TakeReadPart(QpContext& qp, Outbox& outbox, uint32_t index, const wire::ChannelFrame& frame,
                     std::span<const uint8_t> payload);
  Taken TakeAtomicResult(QpContext& qp, Outbox& outbox, uint32_t index, uint64_t original);

  // Marks the request as answered, perhaps before older ones.
  void Answer(const QpContext& qp, uint32_t index);
  // Completes requests that are answered and placed, oldest first. It stops at the first other
  // request, unless the queue pair's completions may come in any order; slots are released in order
  // in any case. A failed request moves the queue pair to the error state once it is the oldest.
  void Retire(QpContext& qp, Outbox& outbox);
  // Ends one request with `status` while the queue pair goes on: for endpoints, whose requests are
  // independent of each other. Call RetireEach afterwards.
  void Conclude(const QpContext& qp, uint32_t index, verbs::WcStatus status);
  // Like Retire, but a failed request only completes with its status.
  void RetireEach(QpContext& qp, Outbox& outbox);
  // Fails the oldest unanswered request with `status`: the queue pair goes to the error state.
  void Fail(QpContext& qp, verbs::WcStatus status);
  // Completes all posted requests, now or in a later call: answered ones with success, failed ones
  // with their status, the rest as flushed. Called in the error state. It waits for memory
  // operations, because a program reuses its buffers once their request has completed.
  void Flush(QpContext& qp, Outbox& outbox);
  // Completes requests that waited for memory operations.
  void OnMemoryDone(QpContext& qp, Outbox& outbox);
  // Writes or reads the state; the size is set before.
  void HandOver(hand_over::StateStream& state, QpContext& qp);

 private:
  // Entries begin at cache lines, each with its SGE list behind it.
  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  static constexpr uint32_t LinesOf(uint32_t max_sge) {
    return static_cast<uint32_t>(
        (sizeof(SendEntry) + max_sge * sizeof(rocegw_sge) + sizeof(Line) - 1) / sizeof(Line));
  }
  Line* LineOf(uint32_t index) const {
    return ring_.get() + static_cast<size_t>(index & mask_) * stride_;
  }
  void PrefetchEntry(uint32_t index) const {
    base::PrefetchLines(LineOf(index), sizeof(SendEntry) + sizeof(rocegw_sge));
  }
  std::span<rocegw_sge> SgesOf(uint32_t index) {
    return {reinterpret_cast<rocegw_sge*>(&At(index) + 1), max_sge_};
  }
  void Complete(QpContext& qp, Outbox& outbox, verbs::WcStatus status);
  void CompleteEarly(QpContext& qp, Outbox& outbox, bool failed_ones);
  void WriteCompletion(QpContext& qp, Outbox& outbox, const SendEntry& entry,
                       verbs::WcStatus status);

  // Used by every message.
  std::unique_ptr<Line[]> ring_;  // entries by index
  uint32_t head_ = 0;             // oldest not retired
  uint32_t tail_ = 0;             // next to fetch
  uint16_t mask_ = 0;
  uint16_t reading_ = 0;
  uint8_t stride_ = 0;  // lines of an entry
  uint8_t max_sge_ = 0;
  bool flushing_ = false;

  // Used by few messages.
  uint32_t flush_ticket_ = 0;
  uint32_t room_ = 0;  // lines allocated in `ring_`
  // Answered, for completions in any order: by the ticket that they wait for.
  GrowingRing<uint32_t> early_;
};

}  // namespace rocegw::transport
