// SPDX-License-Identifier: Apache-2.0
// Interface through which a queue pair acts: it sends packets, queues memory operations and reports
// events. The daemon's worker implements it, and so do the simulator and the unit tests. Calls only
// queue work; none executes it. Belongs to one worker.
//
// Order per queue pair:
// - Memory operations take effect in the order of the Access calls.
// - Packets leave in the order of the Send calls.
// - A packet leaves after the reads that fill it.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/memory/memory_op.h"
#include "gateway/port/packet_port.h"
#include "gateway/transport/endpoint/peer.h"
#include "gateway/transport/in_flight.h"
#include "gateway/transport/qp_context.h"

namespace rocegw::transport {

// Purpose of a memory operation; comes back in its tag when it faults.
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
  Psn psn;               // PSN of the packet concerned
  uint32_t request = 0;  // requester: send queue index; responder on a channel: message number
  bool on_channel = false;
};

class Outbox {
 public:
  virtual ~Outbox() = default;

  // Pool of receive-side state, shared by all queue pairs of the outbox.
  InFlight in_flight;

  // Returns a packet to fill, or nullptr if the port has no buffer. The queue pair tries again at
  // its next Pump.
  virtual port::TxPacket* NewPacket(QpContext& qp) = 0;
  // Takes ownership of the packet.
  virtual void Send(QpContext& qp, port::TxPacket* packet) = 0;
  // Returns a packet for a frame of a carrier with space for the given payload bytes. The caller
  // takes it right before Carrier::OnSent and sends it with SendFrame; the carrier decides how it
  // leaves.
  virtual port::TxPacket* NewFrame(QpContext& qp, flow::Carrier&, uint32_t /*payload*/) {
    return NewPacket(qp);
  }
  virtual void SendFrame(QpContext& qp, flow::Carrier&, port::TxPacket* packet) {
    Send(qp, packet);
  }
  // Queues a memory operation. `fills` is the packet whose payload the operation reads, or nullptr;
  // a read that faults drops its packet. For writes, the bytes at op.buffer need to live only until
  // the end of the burst. An atomic has no buffer; its result comes back with OnAtomicResult.
  virtual void Access(QpContext& qp, const memory::MemoryOp& op, const AccessTag& tag,
                      port::TxPacket* fills) = 0;
  // Copies payloads that packets refer to and that have not left. Called before requests complete
  // whose packets may still wait: their program may reuse the memory.
  virtual void CopyPayloads() {}
  // Returns the channel to the peer's gateway, or the one that is `beside` paths after it. nullptr:
  // no channel is possible, or there are no more paths.
  virtual flow::Carrier* Reach(QpContext&, const Peer&, uint32_t /*beside*/) { return nullptr; }
  // Returns the channel to the same place that is `paths` after the given one; nullptr as above.
  virtual flow::Carrier* Beside(QpContext&, const flow::Carrier&, uint32_t /*paths*/) {
    return nullptr;
  }
  // Returns true if the queue pair's session takes memory operations now. An outbox of a single
  // session need not override it.
  virtual bool MayAccess(QpContext&) { return true; }
  // Returns true if the queue pair may begin another record of a message that arrives in pieces or
  // ahead of others: its pool pays for their heap (QueuePair::records_bytes).
  virtual bool MayRecord(QpContext&) { return true; }
  // Reports an asynchronous event to the program.
  virtual void Event(QpContext& qp, verbs::AsyncEvent event) = 0;
  // Reports that a send request completed successfully, and how long it took since the fetch.
  virtual void Completed(QpContext&, Duration) {}
  // Reports that the client broke the rules of the shared memory; `reason` is a string literal.
  virtual void Fault(QpContext& qp, const char* reason) = 0;
  // Returns the time for completion timestamps, CLOCK_MONOTONIC.
  virtual TimePoint now() const = 0;
};

}  // namespace rocegw::transport
