// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message/remote_read.h"

#include <algorithm>

#include "gateway/transport/message/frame_packet.h"

namespace rocegw::transport {

using wire::ChannelFrame;
using wire::FrameKind;
using wire::NakCode;

std::optional<NakCode> CheckRead(const QpContext& qp, const IncomingMessage& message) {
  if (message.length > verbs::kMaxMessage) return NakCode::kInvalidRequest;
  const bool granted = message.length == 0 ||
                       qp.worker->regions
                           .FindRemote(qp.user(), MemoryKey{message.rkey}, verbs::kAccessRemoteRead,
                                       message.address, message.length)
                           .has_value();
  if (!granted) return NakCode::kRemoteAccess;
  return std::nullopt;
}

std::optional<NakCode> CheckAtomic(const QpContext& qp, const IncomingMessage& message,
                                   verbs::RemotePlace& place) {
  if ((message.address & 7) != 0) return NakCode::kInvalidRequest;
  const std::optional<verbs::RemotePlace> found = qp.worker->regions.FindRemote(
      qp.user(), MemoryKey{message.rkey}, verbs::kAccessRemoteAtomic, message.address, 8);
  if (!found.has_value()) return NakCode::kRemoteAccess;
  place = *found;
  return std::nullopt;
}

namespace {

// Sets what the operation does. Subtraction is the addition of the negative, mod 2^64.
void SetOperation(const IncomingMessage& message, memory::MemoryOp& op) {
  using wire::AtomicOperation;
  op.swap_or_add = message.swap_or_add;
  op.compare = message.compare;
  if (message.kind != FrameKind::kFetchOperate) {
    const bool swap = message.kind == FrameKind::kCompareSwap;
    op.kind = swap ? memory::OpKind::kCompareSwap : memory::OpKind::kFetchAdd;
    return;
  }
  switch (static_cast<AtomicOperation>(message.immediate)) {
    case AtomicOperation::kSwap:
    case AtomicOperation::kStore:
      op.kind = memory::OpKind::kAtomicStore;
      break;
    case AtomicOperation::kAnd:
      op.kind = memory::OpKind::kFetchAnd;
      break;
    case AtomicOperation::kOr:
      op.kind = memory::OpKind::kFetchOr;
      break;
    case AtomicOperation::kXor:
      op.kind = memory::OpKind::kFetchXor;
      break;
    case AtomicOperation::kSubtract:
      op.kind = memory::OpKind::kFetchAdd;
      op.swap_or_add = -message.swap_or_add;
      break;
    case AtomicOperation::kLoad:
    case AtomicOperation::kNone:
    case AtomicOperation::kCount:
      op.kind = memory::OpKind::kAtomicLoad;
      break;
  }
}

}  // namespace

uint32_t ExecuteAtomic(QpContext& qp, Outbox& outbox, const IncomingMessage& message,
                       const verbs::RemotePlace& place, uint32_t request) {
  memory::MemoryOp op{.length = 8, .address = place.address, .direct = place.direct};
  SetOperation(message, op);
  outbox.Access(qp, op,
                {.qp = qp.handle,
                 .ticket = ++qp.tickets_issued,
                 .purpose = AccessPurpose::kAtomic,
                 .request = request,
                 .on_channel = true},
                nullptr);
  return qp.tickets_issued;
}

bool FillAnswer(QpContext& qp, Outbox& outbox, const ExecutedMessage& executed,
                const AnswerPart& part, const flow::CarrierAddress& address,
                port::TxPacket& packet) {
  ChannelFrame frame{.kind = AnswerKindOf(executed),
                     .destination = part.destination,
                     .source = part.source,
                     .message = executed.message,
                     .offset = part.offset,
                     .length = executed.atomic ? 0 : executed.length,
                     .original = executed.result};
  if (part.offset + part.bytes == frame.length) frame.flags |= wire::kFrameLast;
  if (qp.asks_ack) frame.flags |= wire::kFrameAckNow;
  std::optional<verbs::RemotePlace> place;
  if (part.bytes != 0) {
    place =
        qp.worker->regions.FindRemote(qp.user(), MemoryKey{executed.rkey}, verbs::kAccessRemoteRead,
                                      executed.address + part.offset, part.bytes);
    // The region was deregistered while the READ was in progress.
    if (!place.has_value()) return false;
  }
  uint8_t* body = BuildFrame(qp, address, frame, part.psn, part.bytes, packet);
  if (!place.has_value()) return true;
  const memory::MemoryOp op{.kind = memory::OpKind::kRead,
                            .want_crc = true,
                            .length = part.bytes,
                            .address = place->address,
                            .direct = place->direct,
                            .buffer = body};
  outbox.Access(qp, op,
                {.qp = qp.handle,
                 .ticket = ++qp.tickets_issued,
                 .purpose = AccessPurpose::kReadResponse,
                 .psn = part.psn,
                 .request = part.request,
                 .on_channel = true},
                &packet);
  return true;
}

uint32_t NextBytes(const ExecutedMessage& executed, uint32_t most) {
  return executed.atomic ? 0 : std::min(most, executed.length - executed.sent);
}

FrameKind AnswerKindOf(const ExecutedMessage& executed) {
  return executed.atomic ? FrameKind::kAtomicResult : FrameKind::kReadResponse;
}

}  // namespace rocegw::transport
