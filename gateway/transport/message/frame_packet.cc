// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message/frame_packet.h"

#include <cstring>

namespace rocegw::transport {

uint8_t* BuildFrame(const QpContext& qp, const flow::CarrierAddress& address,
                    wire::ChannelFrame& frame, Psn psn, uint32_t payload, port::TxPacket& packet) {
  frame.epoch = address.epoch;
  frame.flags |= address.flags;
  frame.tenant = qp.config.tenant_tag;
  if (frame.destination == kInvalidQpn) frame.destination = qp.attributes.dest_qpn;
  if (frame.source == kInvalidQpn) frame.source = qp.config.qpn;
  const uint32_t pad = -payload & 3;
  size_t length = address.EncodeBth(psn, pad, packet.data);
  length += wire::EncodeFrame(frame, packet.data + length);
  packet.path = address.path;
  packet.bundles = address.bundles;
  packet.seal = address.seal;
  packet.length = static_cast<uint32_t>(length) + payload + pad;
  packet.known_crc = {};
  uint8_t* body = packet.data + length;
  std::memset(body + payload, 0, pad);
  return body;
}

namespace {
// The low half of FrameRef::kind is the frame kind, the high half the low bits of
// QpContext::connection.
constexpr uint8_t kKindMask = 0x0F;
}  // namespace

flow::FrameRef MakeFrameRef(const QpContext& qp, wire::FrameKind kind, uint32_t message,
                            uint8_t attempt) {
  return {.owner = qp.handle,
          .message = message,
          .kind = static_cast<uint8_t>(static_cast<uint8_t>(kind) | qp.connection << 4),
          .extra = attempt};
}

wire::FrameKind FrameKindOf(verbs::SendOpcode opcode) {
  switch (opcode) {
    case verbs::SendOpcode::kWrite:
    case verbs::SendOpcode::kWriteImm:
      return wire::FrameKind::kWrite;
    case verbs::SendOpcode::kRead:
      return wire::FrameKind::kReadRequest;
    case verbs::SendOpcode::kCompareSwap:
      return wire::FrameKind::kCompareSwap;
    case verbs::SendOpcode::kFetchAdd:
      return wire::FrameKind::kFetchAdd;
    case verbs::SendOpcode::kAtomicSwap:
    case verbs::SendOpcode::kAtomicLoad:
    case verbs::SendOpcode::kAtomicStore:
    case verbs::SendOpcode::kFetchAnd:
    case verbs::SendOpcode::kFetchOr:
    case verbs::SendOpcode::kFetchXor:
    case verbs::SendOpcode::kFetchSubtract:
      return wire::FrameKind::kFetchOperate;
    case verbs::SendOpcode::kFlush:
      return wire::FrameKind::kFlush;
    case verbs::SendOpcode::kAtomicWrite:
      return wire::FrameKind::kAtomicWrite;
    case verbs::SendOpcode::kSend:
    case verbs::SendOpcode::kSendImm:
    case verbs::SendOpcode::kSendInvalidate:
    case verbs::SendOpcode::kLocalInvalidate:
    case verbs::SendOpcode::kBindMw:
      break;
  }
  return wire::FrameKind::kSend;
}

wire::FrameKind FrameKindOf(const flow::FrameRef& frame) {
  return static_cast<wire::FrameKind>(frame.kind & kKindMask);
}

uint32_t PayloadOf(const verbs::SendRequest& request) {
  return request.reads_remote() ? 0 : request.length;
}

namespace {

// The order of both enumerations is the same.
wire::AtomicOperation OperationOf(verbs::SendOpcode opcode) {
  constexpr int kOffset = static_cast<int>(verbs::SendOpcode::kAtomicSwap) -
                          static_cast<int>(wire::AtomicOperation::kSwap);
  static_assert(static_cast<int>(verbs::SendOpcode::kAtomicLoad) - kOffset ==
                static_cast<int>(wire::AtomicOperation::kLoad));
  static_assert(static_cast<int>(verbs::SendOpcode::kFetchSubtract) - kOffset ==
                static_cast<int>(wire::AtomicOperation::kSubtract));
  return static_cast<wire::AtomicOperation>(static_cast<int>(opcode) - kOffset);
}

}  // namespace

void PutOperands(const verbs::SendRequest& request, wire::ChannelFrame& frame) {
  if (request.is_fetch_operate()) {
    frame.operation = OperationOf(request.opcode);
    frame.swap_or_add = request.opcode == verbs::SendOpcode::kAtomicLoad ? 0 : request.compare_add;
    return;
  }
  const bool swap = request.opcode == verbs::SendOpcode::kCompareSwap;
  frame.swap_or_add = swap ? request.swap : request.compare_add;
  frame.compare = swap ? request.compare_add : 0;
}

bool SameConnection(const QpContext& qp, const flow::FrameRef& frame) {
  return IsOfConnection(qp.connection, frame);
}

bool IsOfConnection(uint8_t connection, const flow::FrameRef& frame) {
  return frame.kind >> 4 == (connection & kKindMask);
}

}  // namespace rocegw::transport
