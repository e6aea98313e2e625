// SPDX-License-Identifier: Apache-2.0
// Times of the CM protocol: conversion of IBTA's 5-bit codes to durations with Linux's
// approximation (2^(t-8) ms), QP timeouts from ack delay and packet lifetime, and the resend
// schedule of a message without an answer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gateway/base/time.h"

namespace rocegw::cm {

constexpr Duration CodeToDuration(uint8_t code) {
  const int shift = std::max(0, (code & 0x1F) - 8);
  return Milliseconds(int64_t{1} << shift);
}

// Returns the local ack timeout (code) of a QP: twice the packet lifetime plus the remote ack
// delay, rounded up to a power of two. Linux rounds the same way, so both ends compute the same
// code.
constexpr uint8_t AckTimeoutCode(uint8_t ack_delay, uint8_t packet_lifetime) {
  int code = packet_lifetime + 1;
  if (code >= ack_delay) {
    code += ack_delay >= code - 1 ? 1 : 0;
  } else {
    code = ack_delay + (code >= ack_delay - 1 ? 1 : 0);
  }
  return static_cast<uint8_t>(std::min(code, 31));
}

// Times at which a message is sent again and given up. The peer's timeouts ask for intervals of
// seconds; the first resends come sooner, since a datagram lost on Ethernet does not mean that the
// peer is slow.
struct ResendSchedule {
  Duration interval;
  Duration longest;
  TimePoint give_up;

  // `slow` is the interval that the protocol asks for, `tries` the number of sends that it allows.
  // Both may come from the peer, so they are clamped.
  static ResendSchedule Start(TimePoint now, Duration first, Duration slow, int tries) {
    const Duration longest = std::clamp(slow, first, Seconds(60));
    const Duration total = std::clamp(longest * tries, first * 8, Seconds(300));
    return {first, longest, now + total};
  }
  // Always later than `now`, unless it is time to give up: a state of another gateway may hold any
  // interval.
  TimePoint Next(TimePoint now) {
    const TimePoint next = Earlier(now + std::max(interval, Milliseconds(1)), give_up);
    interval = std::min(interval * 2, longest);
    return next;
  }
  // Extends the deadline: the peer has the message and asked for time.
  TimePoint Extend(TimePoint now, Duration wait) {
    give_up = give_up + wait;
    return now + wait;
  }
};

}  // namespace rocegw::cm
