// SPDX-License-Identifier: Apache-2.0
// Memory placement extensions (IBTA annex A19) for responders, native and on channels. ATOMIC WRITE
// stores eight bytes at once; FLUSH confirms that earlier writes are visible to all readers. Client
// memory is cache-coherent memory of this host, so bytes are visible when the storing operation is
// done: a FLUSH needs no operation of its own, only an answer after the earlier ones. Pure
// functions of the queue pair's context. Refusals are NAK codes.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/transport/outbox.h"

namespace rocegw::transport {

struct PlacementRequest {
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;
  uint32_t feth = 0;  // FLUSH: its extended header (FETH)
};

// Checks that the queue pair has the extensions, lets its peer write, and that the eight bytes are
// writable; `place` is set to their location. Returns nothing if the request is allowed.
std::optional<wire::NakCode> CheckAtomicWrite(const QpContext& qp, const PlacementRequest& request,
                                              verbs::RemotePlace& place);
// Queues the store. Fills in queue pair and ticket of `tag`.
void StoreAtomically(QpContext& qp, Outbox& outbox, const verbs::RemotePlace& place, uint64_t value,
                     AccessTag tag);

// Checks that the FLUSH is allowed. Returns nothing if it is.
std::optional<wire::NakCode> CheckFlush(const QpContext& qp, const PlacementRequest& request);

}  // namespace rocegw::transport
