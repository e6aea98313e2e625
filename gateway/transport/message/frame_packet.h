// SPDX-License-Identifier: Apache-2.0
// Builder of channel frames of a queue pair, for peers behind another gateway. native_packet.h
// builds plain RoCEv2 packets for all other peers.
#pragma once

#include "gateway/flow/carrier.h"
#include "gateway/port/packet_port.h"
#include "gateway/transport/qp_context.h"
#include "gateway/verbs/work_request.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

// Returns true for the kinds that a responder sends.
constexpr bool IsAnswer(wire::FrameKind kind) {
  return kind == wire::FrameKind::kReply || kind == wire::FrameKind::kReadResponse ||
         kind == wire::FrameKind::kAtomicResult;
}

// Writes the headers, the pad and the length for `payload` bytes. Returns the address where the
// caller must put the payload; the packet is complete then. Fills in these fields of `frame`:
// tenant, epoch, the source unless the caller set one, and the destination if the queue pair is
// connected.
uint8_t* BuildFrame(const QpContext& qp, const flow::CarrierAddress& address,
                    wire::ChannelFrame& frame, Psn psn, uint32_t payload, port::TxPacket& packet);

// Returns the description from which the queue pair can rebuild the frame. The caller fills in
// offset and length.
flow::FrameRef MakeFrameRef(const QpContext& qp, wire::FrameKind kind, uint32_t message,
                            uint8_t attempt);
wire::FrameKind FrameKindOf(const flow::FrameRef& frame);
// FrameRef::offset of the one frame of a message that wants no reply: its request has completed,
// and no record of it is left. A message is at most 2^31 bytes long.
inline constexpr uint32_t kNoReplyOffset = ~uint32_t{0};
inline bool WantsNoReply(const flow::FrameRef& frame) {
  return !IsAnswer(FrameKindOf(frame)) && frame.offset == kNoReplyOffset;
}
// Returns the kind of the frames that a request of this opcode sends.
wire::FrameKind FrameKindOf(verbs::SendOpcode opcode);
// Returns the payload bytes of the request's own frames: 0 for READs and atomics.
uint32_t PayloadOf(const verbs::SendRequest& request);
// Writes the operands of an atomic into the frame.
void PutOperands(const verbs::SendRequest& request, wire::ChannelFrame& frame);
// Returns false if the queue pair was reset since it sent the frame: the frame is void.
bool SameConnection(const QpContext& qp, const flow::FrameRef& frame);
bool IsOfConnection(uint8_t connection, const flow::FrameRef& frame);

// Limit of the distance of a message from the oldest message that has not taken effect. The
// receiver keeps state for messages in between.
inline constexpr uint32_t kMaxAhead = 8192;

}  // namespace rocegw::transport
