// SPDX-License-Identifier: Apache-2.0
// Builds the frames of a queue pair on a channel: the path between transport values and bytes
// towards another gateway (native_packet.h is the one towards peers that speak plain RoCEv2).
#pragma once

#include "gateway/flow/carrier.h"
#include "gateway/port/packet_port.h"
#include "gateway/transport/qp_context.h"
#include "gateway/verbs/work_request.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

// Writes headers (tenant, epoch, the source if nobody else is named, and the destination of whoever
// is connected to one, are filled in here, in `frame` itself), pad
// and length for `payload` bytes; returns where the payload goes. The packet is complete once those
// bytes are written.
uint8_t* BuildFrame(const QpContext& qp, const flow::CarrierAddress& address,
                    wire::ChannelFrame& frame, Psn psn, uint32_t payload, port::TxPacket& packet);

// What builds such a frame again; offset and length are the caller's to fill in.
flow::FrameRef MakeFrameRef(const QpContext& qp, wire::FrameKind kind, uint32_t message,
                            uint8_t attempt);
wire::FrameKind FrameKindOf(const flow::FrameRef& frame);
// Of the frames that ask for what the request wants.
wire::FrameKind FrameKindOf(verbs::SendOpcode opcode);
// Payload bytes of the request's own frames: READs and atomics are one frame without.
uint32_t PayloadOf(const verbs::SendRequest& request);
// Operands of an atomic, in the request's frame.
void PutOperands(const verbs::SendRequest& request, wire::ChannelFrame& frame);
// False: the queue pair was reset since, and the frame means nothing any more.
bool SameConnection(const QpContext& qp, const flow::FrameRef& frame);
bool IsOfConnection(uint8_t connection, const flow::FrameRef& frame);

// How far ahead of the oldest message without an effect one may be: a receiver remembers those in
// between.
inline constexpr uint32_t kMaxAhead = 8192;

// Kinds that a responder sends.
constexpr bool IsAnswer(wire::FrameKind kind) {
  return kind == wire::FrameKind::kReply || kind == wire::FrameKind::kReadResponse ||
         kind == wire::FrameKind::kAtomicResult;
}

}  // namespace rocegw::transport
