// SPDX-License-Identifier: Apache-2.0
// Donor of a session: connection, state and transfers in flight. The dispatcher's lock guards all
// members; calls of the connection need no lock.
#pragma once

#include <cstdint>
#include <memory>

#include "gateway/far/link/connection.h"
#include "gateway/far/session/operation.h"

namespace rocegw::far {

struct DonorLink {
  enum class State : uint8_t {
    kDown,    // no connection
    kUp,      // transfers are sent
    kEnding,  // transfers in flight are awaited; the connection is closed then
  };
  State state = State::kDown;
  std::unique_ptr<Connection> connection;  // while not kDown
  uint32_t credits = 0;                    // free entries of the send queue
  uint32_t unposted = 0;                   // transfers in flight that are not posted yet
  uint64_t free_bytes = 0;                 // as last reported, less what was asked for since
  uint32_t lease_seconds = 0;
  bool draining = false;  // the donor asks for its memory: data moves to other donors
  Clock::time_point ending_since;
  Transfer* oldest = nullptr;  // in flight, in the order of sending
  Transfer* newest = nullptr;

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
