// SPDX-License-Identifier: Apache-2.0
// READs and atomics as their responder executes them on channels, for connected queue pairs and for
// endpoints: the access check, the operation, and the frames with its outcome. The caller keeps the
// state of the requests. Pure functions of the queue pair's context. Refusals are NAK codes.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/transport/message/incoming_message.h"
#include "gateway/transport/outbox.h"

namespace rocegw::transport {

// Checks that the bytes that the READ names are readable. Returns nothing if the request is
// allowed.
std::optional<wire::NakCode> CheckRead(const QpContext& qp, const IncomingMessage& message);
// Checks that the eight bytes that the atomic names are writable and sets `place` to their
// location. Returns nothing if the request is allowed.
std::optional<wire::NakCode> CheckAtomic(const QpContext& qp, const IncomingMessage& message,
                                         verbs::RemotePlace& place);
// Queues the operation and returns its ticket. Its result comes back with `request` in the tag.
uint32_t ExecuteAtomic(QpContext& qp, Outbox& outbox, const IncomingMessage& message,
                       const verbs::RemotePlace& place, uint32_t request);

// Part of a response that one frame carries, and how the frame leaves.
struct AnswerPart {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  Psn psn;
  uint32_t request = 0;  // names the READ if its memory faults
  // kInvalidQpn: the numbers of the connection.
  Qpn destination;
  Qpn source;
};
// Builds the frame of that part. Returns false if the memory is not readable any more.
bool FillAnswer(QpContext& qp, Outbox& outbox, const ExecutedMessage& executed,
                const AnswerPart& part, const flow::CarrierAddress& address,
                port::TxPacket& packet);
// Returns the payload bytes of the response's next frame, at most `most`.
uint32_t NextBytes(const ExecutedMessage& executed, uint32_t most);
wire::FrameKind AnswerKindOf(const ExecutedMessage& executed);

}  // namespace rocegw::transport
