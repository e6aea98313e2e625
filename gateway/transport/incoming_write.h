// SPDX-License-Identifier: Apache-2.0
// The WRITE that a responder of a connected service is receiving in order: where its next bytes
// belong, and that they may (IBTA 9.7.4.1.4, 9.8.3). What a refusal leads to is the service's.
#pragma once

#include <cstdint>

#include "gateway/transport/outbox.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

class IncomingWrite {
 public:
  enum class Refusal : uint8_t { kNone, kInvalid, kAccess };

  // The packet's place in the message, before anything of it is taken: a first one begins it.
  Refusal Admit(const QpContext& qp, const wire::RxPacket& packet);
  // Queues the placement of its bytes, under a new ticket, and goes on behind them.
  Refusal Place(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet);
  // Of the whole message.
  uint32_t length() const { return length_; }

 private:
  uint64_t address_ = 0;
  uint32_t rkey_ = 0;
  uint32_t left_ = 0;
  uint32_t length_ = 0;
};

}  // namespace rocegw::transport
