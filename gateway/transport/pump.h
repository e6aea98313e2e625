// SPDX-License-Identifier: Apache-2.0
// Words between a queue pair and whoever pumps it: what it may send in a turn, and what came of it.
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

// What a turn may still send. A READ counts with the bytes that it asks for.
struct PumpBudget {
  uint32_t packets = 0;
  int64_t bytes = INT64_MAX;  // a turn ends with the packet that reaches it
  bool last = false;          // its queue pair ends: what tells of what has happened waits no turn
  uint64_t asked = 0;         // of what was taken: asked for by READs, so sent by the peer

  bool left() const { return packets != 0 && bytes > 0; }
  void Take(uint64_t sent) {
    --packets;
    bytes -= static_cast<int64_t>(sent);
  }
};

// Answers and requests share turns and room: who took what there was comes behind who got nothing
// of it. Are requests first the next time?
constexpr bool RequestsFirst(bool were_first, bool answered, bool requested) {
  if (answered != requested) return answered;
  return answered ? !were_first : were_first;
}

}  // namespace rocegw::transport
