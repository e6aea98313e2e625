// SPDX-License-Identifier: Apache-2.0
// READs and atomics as their target executes and answers them on channels, for a connected queue
// pair or for an endpoint: what they may reach, the operation, and the frames that bring its
// outcome. What is remembered of them meanwhile is the caller's. Pure functions of the queue pair's
// context; what they refuse they refuse with a NAK code.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/transport/incoming_message.h"
#include "gateway/transport/outbox.h"

namespace rocegw::transport {

// The bytes that a READ names may be read. Nothing: they may.
std::optional<wire::NakCode> CheckRead(const QpContext& qp, const IncomingMessage& message);
// The eight bytes that an atomic names may be changed: `place` is where.
std::optional<wire::NakCode> CheckAtomic(const QpContext& qp, const IncomingMessage& message,
                                         verbs::RemotePlace& place);
// Queues the operation, which comes back under `request`; its ticket.
uint32_t ExecuteAtomic(QpContext& qp, Outbox& outbox, const IncomingMessage& message,
                       const verbs::RemotePlace& place, uint32_t request);

// Which bytes of an answer a frame brings, and how it leaves.
struct AnswerPart {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  Psn psn;
  uint32_t request = 0;  // names the READ should its memory fault
  // kInvalidQpn: those of the connection.
  Qpn destination;
  Qpn source;
};
// Builds that frame; false: the memory is no longer there to be read.
bool FillAnswer(QpContext& qp, Outbox& outbox, const ExecutedMessage& executed,
                const AnswerPart& part, const flow::CarrierAddress& address,
                port::TxPacket& packet);
// So many bytes of it are in the next frame.
uint32_t NextBytes(const ExecutedMessage& executed, uint32_t most);
wire::FrameKind AnswerKindOf(const ExecutedMessage& executed);

}  // namespace rocegw::transport
