// SPDX-License-Identifier: Apache-2.0
// The WRITE that the responder of a connected service receives in order: checks its packets and
// places their payload (IBTA 9.7.4.1.4, 9.8.3). The caller decides what a refusal leads to.
#pragma once

#include <cstdint>

#include "gateway/transport/outbox.h"
#include "gateway/wire/codec.h"

namespace rocegw::transport {

class IncomingWrite {
 public:
  enum class Refusal : uint8_t { kNone, kInvalid, kAccess };

  // Checks the packet's position in the message before any byte is placed. A first packet begins a
  // new message.
  Refusal Admit(const QpContext& qp, const wire::RxPacket& packet);
  // Queues the placement of the packet's payload under a new ticket and advances past it.
  Refusal Place(QpContext& qp, Outbox& outbox, const wire::RxPacket& packet);
  // Returns the length of the whole message in bytes.
  uint32_t length() const { return length_; }
  void HandOver(hand_over::StateStream& state);

 private:
  uint64_t address_ = 0;
  uint32_t rkey_ = 0;
  uint32_t left_ = 0;
  uint32_t length_ = 0;
};

}  // namespace rocegw::transport
