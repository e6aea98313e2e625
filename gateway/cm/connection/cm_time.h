// SPDX-License-Identifier: Apache-2.0
// Times of the CM protocol: IBTA's 5-bit codes as durations in the approximation that Linux uses
// (2^(t-8) ms), QP timeouts from ack delay and packet lifetime, and the schedule on which a message
// without an answer is sent again.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gateway/base/time.h"

namespace rocegw::cm {

constexpr Duration CodeToDuration(uint8_t code) {
  const int shift = std::max(0, (code & 0x1F) - 8);
  return Milliseconds(int64_t{1} << shift);
}

// Local ack timeout (code) of a QP: twice the packet lifetime plus the remote ack delay, in the
// nearest power of two that is not shorter. The same rounding as Linux, so that both ends of a
// connection compute alike.
constexpr uint8_t AckTimeoutCode(uint8_t ack_delay, uint8_t packet_lifetime) {
  int code = packet_lifetime + 1;
  if (code >= ack_delay) {
    code += ack_delay >= code - 1 ? 1 : 0;
  } else {
    code = ack_delay + (code >= ack_delay - 1 ? 1 : 0);
  }
  return static_cast<uint8_t>(std::min(code, 31));
}

// When to send again, and when to give up. The peer's timeouts ask for intervals of seconds; the
// first resends come sooner, since a datagram lost on Ethernet says nothing about the peer being
// slow.
struct ResendSchedule {
  Duration interval;
  Duration longest;
  TimePoint give_up;

  // `slow` is the interval the protocol asks for, tries the number of sends it allows. Both may
  // come from the peer, so they are held within bounds.
  static ResendSchedule Start(TimePoint now, Duration first, Duration slow, int tries) {
    const Duration longest = std::clamp(slow, first, Seconds(60));
    const Duration total = std::clamp(longest * tries, first * 8, Seconds(300));
    return {first, longest, now + total};
  }
  TimePoint Next(TimePoint now) {
    const TimePoint next = Earlier(now + interval, give_up);
    interval = std::min(interval * 2, longest);
    return next;
  }
  // The peer has the message and asks for time.
  TimePoint Extend(TimePoint now, Duration wait) {
    give_up = give_up + wait;
    return now + wait;
  }
};

}  // namespace rocegw::cm
