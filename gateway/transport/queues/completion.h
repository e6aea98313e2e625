// SPDX-License-Identifier: Apache-2.0
// Work completions of a queue pair: builds them and pushes them to its completion queues.
#pragma once

#include <optional>

#include "gateway/transport/outbox.h"
#include "gateway/verbs/work_request.h"
#include "gateway/wire/headers.h"

namespace rocegw::transport {

verbs::WcOpcode CompletionOpcode(verbs::SendOpcode opcode);

// Returns a completion of the queue pair with qp_num, status, wr_id and slot filled in.
rocegw_cqe MakeCompletion(const QpContext& qp, verbs::WcStatus status, uint64_t wr_id,
                          uint32_t ring_slot);

// Returns the completion status of a request that the peer refused with this syndrome, or nothing
// if no NAK of that kind ends a request (IBTA 11.6.2).
std::optional<verbs::WcStatus> StatusOfNak(uint8_t syndrome);

// Returns the event that a responder reports to its program when it refuses a request (IBTA
// 11.6.3.2).
verbs::AsyncEvent EventOfNak(wire::NakCode code);

// Push a completion to the send or receive completion queue. They return false when that queue is
// overrun: the caller must move the queue pair to the error state.
bool PushSend(QpContext& qp, Outbox& outbox, const rocegw_cqe& cqe);
bool PushReceive(QpContext& qp, Outbox& outbox, const rocegw_cqe& cqe);

}  // namespace rocegw::transport
