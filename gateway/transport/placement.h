// SPDX-License-Identifier: Apache-2.0
// The memory placement extensions (IBTA annex A19) as responders execute them, natively and on
// channels: ATOMIC WRITE stores eight bytes at once, FLUSH says when what was written before it is
// visible to everybody. Memory is this host's, and its caches are coherent: bytes are visible when
// the operation that stores them is done, so a FLUSH is nothing but an answer behind that. Pure
// functions of the queue pair's context; what they refuse they refuse with a NAK code.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/transport/outbox.h"

namespace rocegw::transport {

struct PlacementRequest {
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;
  uint32_t feth = 0;  // FLUSH
};

// The queue pair has the extensions, lets its peer write, and the eight bytes may be written:
// `place` is where. Nothing: they may.
std::optional<wire::NakCode> CheckAtomicWrite(const QpContext& qp, const PlacementRequest& request,
                                              verbs::RemotePlace& place);
// The store; `tag` lacks queue pair and ticket, which it gets.
void StoreAtomically(QpContext& qp, Outbox& outbox, const verbs::RemotePlace& place, uint64_t value,
                     AccessTag tag);

// What the FLUSH asks for is allowed. Nothing: it is.
std::optional<wire::NakCode> CheckFlush(const QpContext& qp, const PlacementRequest& request);

}  // namespace rocegw::transport
