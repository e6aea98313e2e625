// SPDX-License-Identifier: Apache-2.0
// What the halves of a queue pair share: its identity, attributes, queues and the worker's tables
// it looks into. Belongs to one worker; plain data.
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

struct QpContext {
  verbs::QpConfig config;
  verbs::QpAttributes attributes;  // attributes.state is the current one
  SlotHandle handle;               // in the worker's QP table

  shm::WorkQueue sq;
  shm::WorkQueue rq;
  SharedReceives* srq = nullptr;  // receives come from there instead; outlives the queue pair
  verbs::CompletionQueue* send_cq = nullptr;
  verbs::CompletionQueue* recv_cq = nullptr;
  const verbs::MrTable* regions = nullptr;
  metrics::WorkerCounters* counters = nullptr;
  bool last_receive_told = false;  // with an srq, in the error state
  bool ecn = false;                // packets say that switches may mark them (ECT(0))
  // What its requests leave by, fixed before it is ready to send; nullptr: as plain RoCEv2.
  flow::Carrier* carrier = nullptr;
  // By it, a peer that lets messages take effect out of turn where they allow it.
  bool peer_relaxes = false;
  // By it, a peer that knows SENDs with invalidation.
  bool peer_invalidates = false;
  // By it, a peer that knows FLUSH and ATOMIC WRITE.
  bool peer_places = false;
  flow::LinePlace line;  // of its own carrier
  // Why the carrier that was meant for it is not; kNone: it is, or none was.
  wire::ChannelReason declined = wire::ChannelReason::kNone;
  // Channels beside it; nullptr: there are none, as for whoever asks for order.
  std::unique_ptr<Spread> spread;
  uint8_t connection = 0;  // counts resets, so that frames of an earlier connection are known
  void* owner = nullptr;   // the worker's record of the session; not for the transport

  // Memory operations: tickets are handed out in order and reported done in order.
  uint32_t tickets_issued = 0;
  uint32_t tickets_done = 0;
  uint32_t first_ticket = 1;  // older ones were issued before the last reset

  uint64_t sends_completed = 0;
  uint64_t receives_completed = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t retransmits = 0;
  const PeerTable* peers = nullptr;  // endpoint: of its session

  flow::LineMember line_member() const { return {handle, config.tenant_tag}; }
  bool IsBeside(const flow::Carrier& by) const { return spread != nullptr && spread->Has(by); }
  // Its place in the line of the channel that a frame is to leave by.
  flow::LinePlace& PlaceAt(const flow::Carrier& by) {
    flow::LinePlace* const beside = spread == nullptr ? nullptr : spread->PlaceOf(by);
    return beside == nullptr ? line : *beside;
  }

  // As whom its peer reaches memory, and its own requests bind windows.
  verbs::RemoteUser user() const { return {config.session, config.pd, config.qpn, handle}; }
  uint32_t mtu() const { return verbs::MtuBytes(attributes.path_mtu); }
  verbs::QpState state() const { return attributes.state; }
  // States in which requests are taken, and in which they are made and responses are taken.
  bool receives() const { return state() == verbs::QpState::kRtr || sends(); }
  bool sends() const { return state() == verbs::QpState::kRts || state() == verbs::QpState::kSqd; }
  // Nothing from elsewhere may touch a connection.
  bool IsFromPeer(const wire::RxMeta& packet) const {
    return packet.source == attributes.path.destination &&
           packet.destination == attributes.path.source;
  }
  // To the error state, by itself; false: it is there already.
  bool EnterError() {
    if (state() == verbs::QpState::kError) return false;
    attributes.state = verbs::QpState::kError;
    counters->qp_error_events.Add();
    return true;
  }
  bool IsDone(uint32_t ticket) const { return static_cast<int32_t>(tickets_done - ticket) >= 0; }
  // The same ticket, or a newer one that is done as well: kept near, distances never wrap.
  uint32_t Near(uint32_t ticket) const { return IsDone(ticket) ? tickets_done : ticket; }
};

}  // namespace rocegw::transport
