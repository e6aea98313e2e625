// SPDX-License-Identifier: Apache-2.0
// What the halves of a queue pair share: its identity, attributes, queues and the worker's tables
// it looks into. A worker has many queue pairs, and memory is what it waits for: members lie by who
// looks at them, and what every message does comes first: three lines, the first behind the eight
// bytes of QueuePair itself (unit_touched_lines). Belongs to one worker; plain data.
#pragma once

#include <cstdint>
#include <memory>

#include "gateway/flow/carrier.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/shm/work_queue.h"
#include "gateway/transport/peer.h"
#include "gateway/transport/spread.h"
#include "gateway/verbs/completion_queue.h"
#include "gateway/verbs/mr_table.h"
#include "gateway/verbs/qp_config.h"
#include "gateway/verbs/types.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/datagram.h"

namespace rocegw::transport {

class SharedReceives;

// What all queue pairs of a worker look into.
struct WorkerTables {
  const verbs::MrTable& regions;
  metrics::WorkerCounters& counters;
};

// A count that is seldom read and often moved: what is too much for the part that lies beside what
// moves it is carried elsewhere.
class CarriedCount {
 public:
  void Add(uint64_t amount, uint64_t& carried) {
    const uint64_t sum = low_ + amount;
    low_ = static_cast<uint32_t>(sum);
    if (sum != low_) [[unlikely]]
      carried += sum - low_;
  }
  uint64_t With(uint64_t carried) const { return carried + low_; }

 private:
  uint32_t low_ = 0;
};

struct QpContext {
  // Every message.
  SlotHandle handle;  // in the worker's QP table
  // What its requests leave by, fixed before it is ready to send; nullptr: as plain RoCEv2.
  flow::Carrier* carrier = nullptr;
  void* owner = nullptr;  // the worker's record of the session; not for the transport
  const WorkerTables* worker = nullptr;
  verbs::CompletionQueue* send_cq = nullptr;
  verbs::CompletionQueue* recv_cq = nullptr;
  rocegw_qp_control* control = nullptr;  // client memory: untrusted

  rocegw_qp_status* status = nullptr;  // ours, client reads
  shm::RingPlace send_ring;
  shm::RingPlace receive_ring;
  // Memory operations: tickets are handed out in order and reported done in order.
  uint32_t tickets_issued = 0;
  uint32_t tickets_done = 0;
  flow::LinePlace line;      // of its own carrier
  uint8_t connection = 0;    // counts resets, so that frames of an earlier connection are known
  bool flushed : 1 = false;  // it is in the error state, and what was posted is told
  bool tell_drained : 1 = false;     // once the send queue has drained (SQD)
  bool leftovers : 1 = false;        // tickets from before the last reset are not all done
  bool shares_receives : 1 = false;  // they come from `srq`
  bool ecn : 1 = false;              // packets say that switches may mark them (ECT(0))
  // By its carrier, a peer that lets messages take effect out of turn where they allow it.
  bool peer_relaxes : 1 = false;
  // By it, a peer that knows SENDs with invalidation.
  bool peer_invalidates : 1 = false;
  // By it, a peer that knows FLUSH and ATOMIC WRITE.
  bool peer_places : 1 = false;
  bool hears_native : 1 = false;    // requests have come as plain RoCEv2, since the last reset
  bool requests_first : 1 = false;  // in its next turn
  bool bounded : 1 = false;         // by a window of its pool
  bool wants_room : 1 = false;      // it has something to send that does not fit into that
  bool asks_ack : 1 = false;        // the frame that leaves asks for an acknowledgement at once

  CarriedCount sent_count;      // bytes of payload
  CarriedCount received_count;  // the same
  CarriedCount send_completions;
  CarriedCount receive_completions;
  verbs::QpMessageConfig config;
  // Few of them; attributes.state is the current one.
  verbs::QpAttributes attributes;

  verbs::QpPayloadConfig payload;
  // Seldom.
  verbs::QpRareConfig rare;
  struct {
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t sends_completed = 0;
    uint64_t receives_completed = 0;
  } carried;                         // of the counts above
  SharedReceives* srq = nullptr;     // outlives the queue pair
  const PeerTable* peers = nullptr;  // endpoint: of its session
  // Channels beside its carrier; nullptr: there are none, as for whoever asks for order.
  std::unique_ptr<Spread> spread;
  uint64_t retransmits = 0;
  uint32_t under_way = 0;          // bounded: payload on channels that has not arrived
  uint32_t unasked = 0;            // of it, behind the last frame that asked for an acknowledgement
  uint32_t first_ticket = 1;       // older ones were issued before the last reset
  bool last_receive_told = false;  // with an srq, in the error state
  // Why the carrier that was meant for it is not; kNone: it is, or none was.
  wire::ChannelReason declined = wire::ChannelReason::kNone;

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

  flow::LineMember line_member() const { return {handle, config.tenant_tag}; }
  bool IsBeside(const flow::Carrier& by) const {
    return &by != carrier && spread != nullptr && spread->Has(by);
  }
  // Its place in the line of the channel that a frame is to leave by.
  flow::LinePlace& PlaceAt(const flow::Carrier& by) {
    if (&by == carrier) return line;
    flow::LinePlace* const beside = spread == nullptr ? nullptr : spread->PlaceOf(by);
    return beside == nullptr ? line : *beside;
  }

  // nullptr: it has receives of its own.
  void TakeReceivesFrom(SharedReceives* shared) {
    srq = shared;
    shares_receives = shared != nullptr;
  }
  // Its receives that have room for a payload in the ring are those with a smaller number.
  uint32_t payload_slots() const {
    return shares_receives ? rare.rq_entries : receive_ring.entries;
  }
  // As whom its peer reaches memory, and its own requests bind windows.
  verbs::RemoteUser user() const { return {config.session, config.pd, config.qpn, handle}; }
  verbs::KeyScope receive_keys() const {
    return {config.session, shares_receives ? rare.srq_pd : config.pd};
  }
  uint32_t mtu() const { return verbs::MtuBytes(attributes.path_mtu); }
  verbs::QpState state() const { return attributes.state; }
  // Beside so much in its pool's window, which on a channel of many is its own share of what is in
  // flight. A frame that is larger than the window goes alone.
  bool Fits(uint32_t beside, uint32_t bytes) const {
    return beside == 0 || beside + bytes <= rare.window_bytes;
  }
  // What is left of the window is gone sooner than the channel asks for acknowledgements by itself.
  bool AsksAck(uint32_t not_asked_for) const { return not_asked_for >= rare.window_bytes / 4; }
  // Of a connected queue pair; those of an endpoint are towards each peer (lanes.h).
  bool HasRoom(uint32_t bytes) {
    // Others do not touch that line.
    if (!bounded || Fits(under_way, bytes)) return true;
    wants_room = true;
    return false;
  }
  void OnFrameLeaves(flow::Carrier& by, uint32_t bytes) {
    if (!bounded) return;
    by.TellArrivals();
    under_way += bytes;
    unasked += bytes;
    asks_ack = AsksAck(unasked);
    if (asks_ack) unasked = 0;
  }
  // States in which requests are taken, and in which they are made and responses are taken.
  bool receives() const { return state() == verbs::QpState::kRtr || sends(); }
  bool sends() const { return state() == verbs::QpState::kRts || state() == verbs::QpState::kSqd; }
  // Nothing from elsewhere may touch a connection.
  bool IsFromPeer(const wire::RxMeta& packet) const {
    return packet.source == attributes.path.destination &&
           packet.destination == attributes.path.source;
  }
  // Tickets up to this one are done.
  void TakeDone(uint32_t ticket) {
    tickets_done = ticket;
    if (leftovers) leftovers = !IsDone(first_ticket - 1);
  }
  // It was issued before the last reset.
  bool IsLeftOver(uint32_t ticket) const {
    return leftovers && static_cast<int32_t>(ticket - first_ticket) < 0;
  }
  // To the error state, by itself; false: it is there already.
  bool EnterError() {
    if (state() == verbs::QpState::kError) return false;
    attributes.state = verbs::QpState::kError;
    worker->counters.qp_error_events.Add();
    return true;
  }
  bool IsDone(uint32_t ticket) const { return static_cast<int32_t>(tickets_done - ticket) >= 0; }
  // The same ticket, or a newer one that is done as well: kept near, distances never wrap.
  uint32_t Near(uint32_t ticket) const { return IsDone(ticket) ? tickets_done : ticket; }
};

}  // namespace rocegw::transport
