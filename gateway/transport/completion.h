// SPDX-License-Identifier: Apache-2.0
// Writes work completions for a queue pair and raises what a full completion queue means.
#pragma once

#include "gateway/transport/outbox.h"
#include "gateway/verbs/work_request.h"

namespace rocegw::transport {

verbs::WcOpcode CompletionOpcode(verbs::SendOpcode opcode);

// A completion of the QP with status, wr_id and slot filled in.
rocegw_cqe MakeCompletion(const QpContext& qp, verbs::WcStatus status, uint64_t wr_id,
                          uint32_t ring_slot);

// False when the queue is overrun: the QP must go to error.
bool PushSend(QpContext& qp, Outbox& outbox, const rocegw_cqe& cqe);
bool PushReceive(QpContext& qp, Outbox& outbox, const rocegw_cqe& cqe);

}  // namespace rocegw::transport
