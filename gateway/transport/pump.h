// SPDX-License-Identifier: Apache-2.0
// Budget and result of pumping a queue pair: how much it may send, and what it waits for then.
#pragma once

#include <cstdint>

namespace rocegw::transport {

enum class PumpResult : uint8_t {
  kIdle,     // nothing to send until a doorbell, a response or a deadline
  kMore,     // the budget is used up or the port is full: pump again
  kBlocked,  // waits for an acknowledgement or a deadline
};

constexpr PumpResult Busier(PumpResult a, PumpResult b) {
  if (a == PumpResult::kMore || b == PumpResult::kMore) return PumpResult::kMore;
  return a == PumpResult::kBlocked ? a : b;
}

// Event of a queue pair that is about to happen, for prefetching.
enum class NextEvent : uint8_t {
  kTurn,     // requests are sent
  kSend,     // a SEND arrives
  kRequest,  // another request arrives
  kAnswer,   // an acknowledgement or a response arrives
};

// Budget of one Pump call. A READ counts with the bytes that it requests.
struct PumpBudget {
  uint32_t packets = 0;
  int64_t bytes = INT64_MAX;  // the call ends with the packet that reaches it
  bool last = false;          // the queue pair is about to close: replies ignore the wait queue
  uint64_t asked = 0;         // part of the bytes taken that READs requested: the peer sends them

  bool left() const { return packets != 0 && bytes > 0; }
  void Take(uint64_t sent) {
    --packets;
    bytes -= static_cast<int64_t>(sent);
  }
};

// Decides whether requests go before answers in the next Pump, so that neither starves the other:
// the side that could send this time goes second next time.
constexpr bool RequestsFirst(bool were_first, bool answered, bool requested) {
  if (answered != requested) return answered;
  return answered ? !were_first : were_first;
}

}  // namespace rocegw::transport
