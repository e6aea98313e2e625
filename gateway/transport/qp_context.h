// SPDX-License-Identifier: Apache-2.0
// State that the requester and the responder of a queue pair share: identity, attributes, queues,
// and the worker's tables. Memory access dominates a worker's cost when it has many queue pairs, so
// fields are ordered by how often they are used. Fields of every message fill the first three cache
// lines; the first line begins with 8 bytes of QueuePair itself (test: unit_touched_lines). Belongs
// to one worker; plain data.
#pragma once

#include <cstdint>
#include <memory>

#include "gateway/flow/carrier.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/shm/work_queue.h"
#include "gateway/transport/endpoint/peer.h"
#include "gateway/transport/message/multipath.h"
#include "gateway/verbs/completion_queue.h"
#include "gateway/verbs/mr_table.h"
#include "gateway/verbs/qp_config.h"
#include "gateway/verbs/types.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/datagram.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::transport {

class SharedReceives;

// Tables and counters that all queue pairs of a worker use.
struct WorkerTables {
  const verbs::MrTable& regions;
  metrics::WorkerCounters& counters;
};

// 64-bit count split in two: the low half lies in the hot part of its owner. The high half
// (`carried`) lies in the cold part and is written only when the low half wraps around.
class CarriedCount {
 public:
  void Add(uint64_t amount, uint64_t& carried) {
    const uint64_t sum = low_ + amount;
    low_ = static_cast<uint32_t>(sum);
    if (sum != low_) [[unlikely]]
      carried += sum - low_;
  }
  uint64_t With(uint64_t carried) const { return carried + low_; }
  void HandOver(hand_over::StateStream& state, uint64_t& carried);

 private:
  uint32_t low_ = 0;
};

// Path that the requests of a connected queue pair take.
enum class RequestPath : uint8_t {
  kUndecided,  // before the state RTS, and after the loss of the channel, which is an error
  kNative,     // plain RoCEv2
  kChannel,    // the queue pair's carrier, and the carriers beside it
};

struct QpContext {
  // Used by every message.
  SlotHandle handle;  // in the worker's QP table
  // Channel that its requests leave by if `request_path` is kChannel; bound before the state RTS.
  flow::Carrier* carrier = nullptr;
  SessionIndex owner;  // its session; the transport does not use it
  const WorkerTables* worker = nullptr;
  // Memory operations: tickets are issued in order and reported done in order.
  uint32_t tickets_issued = 0;
  uint32_t tickets_done = 0;
  verbs::CompletionQueue* send_cq = nullptr;
  rocegw_qp_control* control = nullptr;  // client memory: untrusted

  // Used by every message but a received WRITE.
  rocegw_qp_status* status = nullptr;  // the gateway's memory, which the client reads
  shm::RingPlace send_ring;
  shm::RingPlace receive_ring;
  verbs::CompletionQueue* recv_cq = nullptr;

  flow::WaitEntry wait_entry;        // entry in the wait queue of its own carrier
  uint8_t connection = 0;            // counts resets, to recognise frames of an earlier connection
  bool flushed : 1 = false;          // in the error state, and all posted requests are completed
  bool report_drained : 1 = false;   // report once the send queue has drained (SQD)
  bool leftovers : 1 = false;        // tickets from before the last reset are not all done
  bool shares_receives : 1 = false;  // receives come from `srq`
  bool ecn : 1 = false;              // packets are sent with ECT(0)
  // The peer behind the carrier lets messages take effect out of order where they allow it.
  bool peer_relaxes : 1 = false;
  // The peer behind the carrier supports SENDs with invalidation.
  bool peer_invalidates : 1 = false;
  // The peer behind the carrier supports FLUSH and ATOMIC WRITE.
  bool peer_places : 1 = false;
  // The peer behind the carrier supports wire::FrameKind::kFetchOperate.
  bool peer_operates : 1 = false;
  bool hears_native : 1 = false;   // requests have arrived as plain RoCEv2 since the last reset
  bool hears_channel : 1 = false;  // requests have arrived on a channel since the last reset
  // A receive may be open or wait for its completion. RC only.
  bool receiving : 1 = false;
  // The sending half has no request and no deadline. RC only. Until the next event of that half
  // (EndRest) its cache lines are not read.
  bool requests_rest : 1 = false;
  bool requests_first : 1 = false;  // requests go before answers in the next Pump
  bool bounded : 1 = false;         // its pool has a window (rare.window_bytes)
  bool wants_room : 1 = false;      // a frame did not fit into that window
  bool asks_ack : 1 = false;  // the frame that leaves next asks for an acknowledgement at once
  RequestPath request_path : 2 = RequestPath::kUndecided;

  CarriedCount sent_count;      // payload bytes
  CarriedCount received_count;  // payload bytes
  CarriedCount send_completions;
  CarriedCount receive_completions;
  verbs::QpMessageConfig config;
  // Seldom used by messages; attributes.state is the current state.
  verbs::QpAttributes attributes;

  verbs::QpPayloadConfig payload;
  // Used by control operations and exceptional events.
  verbs::QpRareConfig rare;
  struct {
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t sends_completed = 0;
    uint64_t receives_completed = 0;
  } carried;                         // high halves of the counts above
  SharedReceives* srq = nullptr;     // outlives the queue pair
  const PeerTable* peers = nullptr;  // endpoint: the peers of its session
  // Channels beside its carrier; nullptr: none, as for every queue pair that asks for order.
  std::unique_ptr<Multipath> multipath;
  uint64_t retransmits = 0;
  uint32_t in_flight = 0;  // bounded: payload bytes on channels that have not arrived
  // Part of in_flight behind the last frame that asked for an acknowledgement.
  uint32_t unasked = 0;
  uint32_t first_ticket = 1;           // tickets before it were issued before the last reset
  bool last_receive_reported = false;  // kLastWqeReached was reported (srq, error state)
  // Reason why the intended carrier was declined; kNone: the queue pair has it, or none was
  // intended.
  wire::ChannelReason declined = wire::ChannelReason::kNone;

  // Return the slots of the next posted request and receive.
  const uint8_t* NextSend() const { return send_ring.Next(); }
  const uint8_t* NextReceive() const { return receive_ring.Next(); }

  using Ring = shm::WorkQueueOn<shm::RingPlace&>;
  Ring sq() { return {&control->sq_producer, &status->sq_released, send_ring}; }
  Ring rq() { return {&control->rq_producer, &status->rq_released, receive_ring}; }
  shm::WorkQueueOn<const shm::RingPlace&> rq() const {
    return {&control->rq_producer, &status->rq_released, receive_ring};
  }

  void CountBytesSent(uint64_t bytes) { sent_count.Add(bytes, carried.bytes_sent); }
  void CountBytesReceived(uint64_t bytes) { received_count.Add(bytes, carried.bytes_received); }
  void CountSendCompleted() { send_completions.Add(1, carried.sends_completed); }
  void CountReceiveCompleted() { receive_completions.Add(1, carried.receives_completed); }
  uint64_t bytes_sent() const { return sent_count.With(carried.bytes_sent); }
  uint64_t bytes_received() const { return received_count.With(carried.bytes_received); }
  uint64_t sends_completed() const { return send_completions.With(carried.sends_completed); }
  uint64_t receives_completed() const {
    return receive_completions.With(carried.receives_completed);
  }

  // Clears what the peer behind the carrier supports.
  void ForgetPeerOptions() {
    peer_relaxes = peer_invalidates = peer_places = peer_operates = false;
  }
  // Called with each event that the sending half may have to act on.
  void EndRest() { requests_rest = false; }
  bool requests_on_channel() const { return request_path == RequestPath::kChannel; }
  flow::WindowWaiter window_waiter() const { return {handle, config.tenant_tag}; }
  bool IsBeside(const flow::Carrier& by) const {
    return &by != carrier && multipath != nullptr && multipath->Has(by);
  }
  // Returns the entry in the wait queue of the channel that a frame is to leave by.
  flow::WaitEntry& WaitEntryAt(const flow::Carrier& by) {
    if (&by == carrier) return wait_entry;
    flow::WaitEntry* const beside = multipath == nullptr ? nullptr : multipath->WaitEntryOf(by);
    return beside == nullptr ? wait_entry : *beside;
  }

  // Sets the shared receive queue; nullptr: the queue pair has a receive queue of its own.
  void TakeReceivesFrom(SharedReceives* shared) {
    srq = shared;
    shares_receives = shared != nullptr;
  }
  // Returns the number of ring slots with a payload slot: slots below it have one.
  uint32_t payload_slots() const {
    return shares_receives ? rare.rq_entries : receive_ring.entries;
  }
  // Returns the identity under which the peer reaches memory and its own requests bind windows.
  verbs::RemoteUser user() const { return {config.session, config.pd, config.qpn, handle}; }
  verbs::KeyScope receive_keys() const {
    return {config.session, shares_receives ? rare.srq_pd : config.pd};
  }
  uint32_t mtu() const { return verbs::MtuBytes(attributes.path_mtu); }
  verbs::QpState state() const { return attributes.state; }
  // Returns true if a frame fits into the pool's window when `beside` bytes are in flight. A frame
  // that is larger than the window goes alone.
  bool Fits(uint32_t beside, uint32_t bytes) const {
    return beside == 0 || beside + bytes <= rare.window_bytes;
  }
  // Returns true if the frame must ask for an acknowledgement: the window is a share of the
  // channel's, so it would run out before the channel asks by itself.
  bool AsksAck(uint32_t not_asked_for) const { return not_asked_for >= rare.window_bytes / 4; }
  // Returns true if the pool's window has space. Connected queue pairs only; an endpoint has a
  // window for each peer (peer_channels.h).
  bool HasRoom(uint32_t bytes) {
    // A queue pair without a window must not touch the cache line of `in_flight`.
    if (!bounded || Fits(in_flight, bytes)) return true;
    wants_room = true;
    return false;
  }
  void OnFrameLeaves(flow::Carrier& by, uint32_t bytes) {
    if (!bounded) return;
    by.ReportArrivals();
    in_flight += bytes;
    unasked += bytes;
    asks_ack = AsksAck(unasked);
    if (asks_ack) unasked = 0;
  }
  // States in which requests are accepted from the peer (receives), and in which requests are sent
  // and responses are accepted (sends).
  bool receives() const { return state() == verbs::QpState::kRtr || sends(); }
  bool sends() const { return state() == verbs::QpState::kRts || state() == verbs::QpState::kSqd; }
  // Checks the addresses: a packet from another host must not affect the connection.
  bool IsFromPeer(const wire::RxMeta& packet) const {
    return packet.source == attributes.path.destination &&
           packet.destination == attributes.path.source;
  }
  // Records that all tickets up to this one are done.
  void TakeDone(uint32_t ticket) {
    tickets_done = ticket;
    if (leftovers) leftovers = !IsDone(first_ticket - 1);
  }
  // Returns true if the ticket was issued before the last reset.
  bool IsLeftOver(uint32_t ticket) const {
    return leftovers && static_cast<int32_t>(ticket - first_ticket) < 0;
  }
  // Moves to the error state without modify_qp. Returns false if the state is error already.
  bool EnterError() {
    if (state() == verbs::QpState::kError) return false;
    attributes.state = verbs::QpState::kError;
    worker->counters.qp_error_events.Add();
    return true;
  }
  bool IsDone(uint32_t ticket) const { return static_cast<int32_t>(tickets_done - ticket) >= 0; }
  // Returns the ticket, or a newer one if it is done. Storing the result keeps the distance between
  // tickets small, so that comparisons never wrap around.
  uint32_t Near(uint32_t ticket) const { return IsDone(ticket) ? tickets_done : ticket; }

  // Writes or reads the state (hand_over/state_stream.h), without configuration and links.
  void HandOver(hand_over::StateStream& state);
};

}  // namespace rocegw::transport
