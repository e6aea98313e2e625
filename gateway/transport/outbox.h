// SPDX-License-Identifier: Apache-2.0
// Where a queue pair puts what it wants done: packets, memory operations, events. The worker
// implements it in the daemon, the simulator and tests with their own networks and memories.
// Everything is queued; nothing is executed inside a call.
//
// Order per queue pair: memory operations take effect in the order of Access calls, packets leave
// in the order of Send calls, and a packet leaves after the reads that fill it.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/memory/memory_op.h"
#include "gateway/port/packet_port.h"
#include "gateway/transport/peer.h"
#include "gateway/transport/qp_context.h"
#include "gateway/transport/under_way.h"

namespace rocegw::transport {

// What a memory operation was for; comes back when it faults.
enum class AccessPurpose : uint8_t {
  kSendPayload,      // requester reads a message
  kReadPlacement,    // requester places a READ response
  kAtomicPlacement,  // requester places an atomic's result
  kReceive,          // responder places a SEND
  kWrite,            // responder places a WRITE
  kReadResponse,     // responder reads for a READ response
  kAtomic,           // responder executes an atomic
};

struct AccessTag {
  SlotHandle qp;
  uint32_t ticket = 0;
  AccessPurpose purpose = AccessPurpose::kSendPayload;
  Psn psn;               // of the packet concerned
  uint32_t request = 0;  // requester: index of the work request; responder on a channel: message
  bool on_channel = false;
};

class Outbox {
 public:
  virtual ~Outbox() = default;

  // Belongs to all of its queue pairs.
  UnderWay under_way;

  // A packet to fill, or nullptr when the port has none: the queue pair tries again when it is
  // pumped next.
  virtual port::TxPacket* NewPacket(QpContext& qp) = 0;
  // Takes the packet.
  virtual void Send(QpContext& qp, port::TxPacket* packet) = 0;
  // The same for a frame of a carrier, with room for so many payload bytes: taken right before it
  // is entered there (Carrier::OnSent), and sent as what that carrier makes of it.
  virtual port::TxPacket* NewFrame(QpContext& qp, flow::Carrier&, uint32_t /*payload*/) {
    return NewPacket(qp);
  }
  virtual void SendFrame(QpContext& qp, flow::Carrier&, port::TxPacket* packet) {
    Send(qp, packet);
  }
  // fills: the packet whose payload the operation reads, nullptr otherwise. A faulting read drops
  // its packet. Bytes that op.buffer points to need only live until the end of the burst for
  // writes; atomics have no buffer, their result comes back with OnAtomicResult.
  virtual void Access(QpContext& qp, const memory::MemoryOp& op, const AccessTag& tag,
                      port::TxPacket* fills) = 0;
  // The channel to that peer's gateway, or another one so many paths beside it; nullptr: there can
  // be none, or are no more paths.
  virtual flow::Carrier* Reach(QpContext&, const Peer&, uint32_t /*beside*/) { return nullptr; }
  // The channel to where that one leads, so many paths beside it; nullptr as above.
  virtual flow::Carrier* Beside(QpContext&, const flow::Carrier&, uint32_t /*paths*/) {
    return nullptr;
  }
  // Does its session take memory operations now? Who works for one session does not ask.
  virtual bool MayAccess(QpContext&) { return true; }
  virtual void Event(QpContext& qp, verbs::AsyncEvent event) = 0;
  // A request of its send queue has completed well, so long after it was taken.
  virtual void Completed(QpContext&, Duration) {}
  // The client broke the rules of the shared memory.
  virtual void Fault(QpContext& qp, const char* reason) = 0;
  // Completion timestamps, CLOCK_MONOTONIC.
  virtual TimePoint now() const = 0;
};

}  // namespace rocegw::transport
