// SPDX-License-Identifier: Apache-2.0
// Writes work completions for a queue pair and raises what a full completion queue means.
#pragma once

#include <optional>

#include "gateway/transport/outbox.h"
#include "gateway/verbs/work_request.h"
#include "gateway/wire/headers.h"

namespace rocegw::transport {

verbs::WcOpcode CompletionOpcode(verbs::SendOpcode opcode);

// A completion of the QP with status, wr_id and slot filled in.
rocegw_cqe MakeCompletion(const QpContext& qp, verbs::WcStatus status, uint64_t wr_id,
                          uint32_t ring_slot);

// What a request ends with that was refused with this syndrome; nothing when no NAK of that kind
// ends a request (IBTA 11.6.2).
std::optional<verbs::WcStatus> StatusOfNak(uint8_t syndrome);

// What a responder tells its program when it refuses a request (IBTA 11.6.3.2).
verbs::AsyncEvent EventOfNak(wire::NakCode code);

// False when the queue is overrun: the QP must go to error.
bool PushSend(QpContext& qp, Outbox& outbox, const rocegw_cqe& cqe);
bool PushReceive(QpContext& qp, Outbox& outbox, const rocegw_cqe& cqe);

}  // namespace rocegw::transport
