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

uint32_t ExecuteAtomic(QpContext& qp, Outbox& outbox, const IncomingMessage& message,
                       const verbs::RemotePlace& place, uint32_t request) {
  const bool swap = message.kind == FrameKind::kCompareSwap;
  const memory::MemoryOp op{.kind = swap ? memory::OpKind::kCompareSwap : memory::OpKind::kFetchAdd,
                            .length = 8,
                            .address = place.address,
                            .direct = place.direct,
                            .compare = message.compare,
                            .swap_or_add = message.swap_or_add};
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
