// SPDX-License-Identifier: Apache-2.0
// Effects of messages: completions of receives, the last bytes of WRITEs, READs and atomics (IBTA
// 9.7.4), in message order or ahead of it.
#include <algorithm>

#include "gateway/transport/message/frame_packet.h"
#include "gateway/transport/message/message_responder.h"
#include "gateway/transport/message/remote_read.h"
#include "gateway/transport/placement.h"

namespace rocegw::transport {

using verbs::WcStatus;
using wire::FrameKind;
using wire::NakCode;
using wire::SyndromeOf;

bool MessageResponder::Execute(QpContext& qp, Outbox& outbox, IncomingMessage& message) {
  const uint32_t number = expected_;
  if (!message.refused && message.nak == 0) Act(qp, outbox, message, number);
  if (message.refused) {
    RefuseForNow(qp, outbox);
    return false;
  }
  if (message.nak != 0) {
    // The program learns of the fault by the receive that the immediate would have taken (IBTA
    // 11.6.2).
    if (message.kind == FrameKind::kWrite && message.takes_receive() &&
        message.nak == SyndromeOf(NakCode::kRemoteAccess) && HasReceive(qp, message, number) &&
        OpenReceiveOf(qp, outbox, message)) {
      message.receive_status = WcStatus::kLocalAccess;
    }
    if (message.receive_status != WcStatus::kSuccess && receives_.IsOpen(message.taken))
      receives_.CloseFailed(qp, message.taken, message.receive_status, placement_ticket_);
    Refuse(qp, outbox, number, message.nak, Placed(qp));
    return false;
  }
  if (message.has_reply()) QueueAck(qp, outbox, number);
  return true;
}

void MessageResponder::Act(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                           uint32_t number) {
  switch (message.kind) {
    case FrameKind::kSend:
      ActSend(qp, outbox, message, number);
      break;
    case FrameKind::kWrite:
      ActWrite(qp, outbox, message, number);
      break;
    case FrameKind::kReadRequest:
      ActRead(qp, outbox, message, number);
      break;
    case FrameKind::kFlush:
    case FrameKind::kAtomicWrite:
      ActPlacement(qp, outbox, message, number);
      break;
    default:
      ActAtomic(qp, outbox, message, number);
      break;
  }
}

// Checks the receive that the message names. A message takes at most one receive, so its receive
// cannot lie further ahead than the message itself, and no other message may have taken it.
bool MessageResponder::HasReceive(const QpContext& qp, const IncomingMessage& message,
                                  uint32_t number) const {
  if (qp.shares_receives) return true;
  const uint32_t ahead = message.receive - receives_.first();
  return ahead <= number - expected_ &&
         (ahead >= receives_.next() - receives_.first() || receives_.IsOpen(message.receive));
}

void MessageResponder::CompleteReceive(QpContext& qp, Outbox& outbox,
                                       const IncomingMessage& message) {
  receives_.CloseReceived(qp, outbox, message.taken,
                          {.write = message.kind == FrameKind::kWrite,
                           .has_immediate = (message.flags & wire::kFrameImmediate) != 0,
                           .solicited = (message.flags & wire::kFrameSolicited) != 0,
                           .in_ring = message.in_ring,
                           .has_invalidated = message.invalidates(),
                           .length = message.length,
                           .immediate = message.immediate,
                           .invalidated = message.rkey},
                          placement_ticket_);
}

void MessageResponder::ActSend(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                               uint32_t number) {
  if (!HasReceive(qp, message, number)) {
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
    return;
  }
  if (message.invalidates() && !qp.worker->regions.Invalidate(qp.user(), MemoryKey{message.rkey})) {
    message.nak = SyndromeOf(NakCode::kRemoteAccess);
    message.receive_status = WcStatus::kLocalAccess;
    return;
  }
  CompleteReceive(qp, outbox, message);
}

void MessageResponder::ActWrite(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                                uint32_t number) {
  if (message.takes_receive()) {
    if (!HasReceive(qp, message, number)) {
      message.nak = SyndromeOf(NakCode::kInvalidRequest);
      return;
    }
    if (!OpenReceiveOf(qp, outbox, message)) {
      message.refused = true;
      return;
    }
    // A WRITE with immediate takes a receive and none of its buffers.
    const OpenReceive& receive = receives_.At(message.taken);
    if (receive.status != WcStatus::kSuccess) {
      message.nak = SyndromeOf(NakCode::kRemoteOperation);
      message.receive_status = receive.status;
      qp.worker->counters.wqe_bad_requests.Add();
      return;
    }
  }
  if (message.tail_length != 0) {
    PlaceWrite(qp, outbox, message, number, message.length - message.tail_length,
               {reinterpret_cast<const uint8_t*>(&message.tail), message.tail_length},
               Placing::kHeldTail);
  }
  if (message.nak != 0 || message.refused) return;
  if (message.takes_receive()) CompleteReceive(qp, outbox, message);
}

// Performs FLUSH or ATOMIC WRITE. The reply waits for everything placed before, and for an ATOMIC
// WRITE itself.
void MessageResponder::ActPlacement(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                                    uint32_t number) {
  const PlacementRequest request{message.address, message.rkey, message.length, message.immediate};
  if (message.kind == FrameKind::kFlush) {
    if (const auto refused = CheckFlush(qp, request)) message.nak = SyndromeOf(*refused);
    return;
  }
  verbs::RemotePlace place;
  if (const auto refused = CheckAtomicWrite(qp, request, place)) {
    message.nak = SyndromeOf(*refused);
    return;
  }
  message.local = place.address;
  if (PlacedLater(message, number)) {
    PlaceWrite(qp, outbox, message, number, 0,
               {reinterpret_cast<const uint8_t*>(&message.swap_or_add), message.length},
               Placing::kHeldTail);
    return;
  }
  StoreAtomically(qp, outbox, place, message.swap_or_add,
                  {.purpose = AccessPurpose::kWrite, .request = number, .on_channel = true});
  placement_ticket_ = qp.tickets_issued;
}

MessageResponder::Executed* MessageResponder::Remember(QpContext& qp, Outbox& outbox,
                                                       IncomingMessage& message, uint32_t number) {
  const size_t depth = qp.attributes.max_dest_rd_atomic;
  std::vector<Executed>& executed = Working(outbox).executed;
  const auto before = [this](const Executed& a, const Executed& b) {
    return static_cast<int32_t>(a.message - expected_) <
           static_cast<int32_t>(b.message - expected_);
  };
  if (executed.size() < depth) {
    executed.reserve(depth);
    executed.push_back({.message = number});
  }
  // The peer releases responses in order and may have at most `depth` outstanding. If all slots are
  // in use, it no longer waits for the request with the lowest number.
  auto place = std::find_if(executed.begin(), executed.end(),
                            [](const Executed& other) { return !other.asked; });
  if (place == executed.end() && depth != 0)
    place = std::min_element(executed.begin(), executed.end(), before);
  if (place == executed.end() || (place->asked && !place->answered)) {
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
    return nullptr;
  }
  *place = {.asked = true,
            .message = number,
            .address = message.address,
            .rkey = message.rkey,
            .length = message.length};
  work_->answering.push_back(static_cast<uint32_t>(place - executed.begin()));
  return &*place;
}

void MessageResponder::ActRead(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                               uint32_t number) {
  if ((qp.attributes.access & verbs::kAccessRemoteRead) == 0) {
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
  } else if (const auto refused = CheckRead(qp, message)) {
    message.nak = SyndromeOf(*refused);
  } else {
    Remember(qp, outbox, message, number);
  }
}

void MessageResponder::ActAtomic(QpContext& qp, Outbox& outbox, IncomingMessage& message,
                                 uint32_t number) {
  if ((qp.attributes.access & verbs::kAccessRemoteAtomic) == 0) {
    message.nak = SyndromeOf(NakCode::kInvalidRequest);
    return;
  }
  verbs::RemotePlace place;
  if (const auto refused = CheckAtomic(qp, message, place)) {
    message.nak = SyndromeOf(*refused);
    return;
  }
  Executed* executed = Remember(qp, outbox, message, number);
  if (executed == nullptr) return;
  placement_ticket_ = ExecuteAtomic(qp, outbox, message, place, number);
  executed->atomic = true;
  executed->ticket = placement_ticket_;
}

}  // namespace rocegw::transport
