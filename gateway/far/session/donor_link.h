// SPDX-License-Identifier: Apache-2.0
// Donor of a session: connection, state and transfers in flight. The dispatcher's lock guards all
// members; calls of the connection need no lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "gateway/far/link/connection.h"
#include "gateway/far/link/protocol.h"
#include "gateway/far/session/operation.h"
#include "gateway/far/session/settings.h"

namespace rocegw::far {

struct DonorLink {
  enum class State : uint8_t {
    kDown,    // no connection
    kUp,      // transfers are sent
    kEnding,  // transfers in flight are awaited; the connection is closed then
  };
  State state = State::kDown;
  std::unique_ptr<Connection> connection;  // while not kDown
  uint32_t credits = 0;                    // free entries of the send queue for requests
  uint32_t unposted = 0;                   // transfers in flight that are not posted yet
  uint64_t free_bytes = 0;                 // as last reported, less what was asked for since
  uint32_t lease_seconds = 0;
  // Questions that the donor has not answered yet.
  int leases_asked = 0;
  int renewals_asked = 0;
  bool draining = false;  // the donor asks for its memory: data moves to other donors
  SessionProof proof;     // by which the next connection continues the session there
  Settings::Donor named;  // its address
  uint32_t refusals = 0;  // connections in a row that its host has refused while suspended
  // The device of this host has ended, and the connection with it. The donor keeps the leases for a
  // while: requests wait until the session continues there.
  bool suspended = false;
  Clock::time_point ending_since;
  Transfer* oldest = nullptr;  // in flight, in the order of sending
  Transfer* newest = nullptr;

  // Whether the message answers a question, which is answered then.
  bool TakeAnswer(const std::optional<Message>& message) {
    if (!message) return false;
    if (message->type == MessageType::kLeased) return leases_asked > 0 && leases_asked-- > 0;
    return message->type == MessageType::kRenewed && renewals_asked > 0 && renewals_asked-- > 0;
  }

  void Append(Transfer& transfer) {
    transfer.previous = newest;
    transfer.next = nullptr;
    (newest != nullptr ? newest->next : oldest) = &transfer;
    newest = &transfer;
  }
  void Remove(Transfer& transfer) {
    (transfer.previous != nullptr ? transfer.previous->next : oldest) = transfer.next;
    (transfer.next != nullptr ? transfer.next->previous : newest) = transfer.previous;
  }
};

}  // namespace rocegw::far
