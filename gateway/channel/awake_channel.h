// SPDX-License-Identifier: Apache-2.0
// What a channel needs while something moves on it, and what all channels of a worker share. Of a
// channel that rests there is only what channel.h has; blocks of this kind come from the worker's
// shelf, so that their number follows the channels in use. Belongs to a ChannelSet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/base/containers/shelf.h"
#include "gateway/base/fleet_keys.h"
#include "gateway/channel/line.h"
#include "gateway/channel/local_addresses.h"
#include "gateway/channel/owner.h"
#include "gateway/flow/receive_window.h"
#include "gateway/flow/selective_flow.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/wire/congestion_hint.h"

namespace rocegw::channel {

// What is to be told next; one bit each.
enum DueBit : uint8_t {
  kDueOpen = 1,
  kDueOpened = 2,
  kDueProbe = 4,
  kDueClose = 8,
  kDueClosed = 16,
};

inline constexpr Duration kFirstOpenResend = Milliseconds(5);

// By use: what every frame and every acknowledgement touch is three lines of memory, up to the
// congestion control of what is sent; the fourth is for losses, probes, the handshake, and those
// who wait.
struct alignas(64) AwakeChannel {
  uint8_t due = 0;             // DueBits
  uint8_t probes_heard = 0;    // of the peer, and nothing else since
  bool answers_probe = false;  // with the next acknowledgement
  wire::HintMeter hints;       // of what has come
  flow::ReceiveWindow in;
  TimePoint armed = kNever;  // in the worker's wheel
  flow::SelectiveFlow out;

  Line line;
  TimePoint handshake_at = kNever;
  // Of one that nobody uses: since when, or later; until it opens: when it was made. kNever: not
  // noted yet.
  TimePoint idle_since = kNever;
  Duration open_resend = kFirstOpenResend;
  uint32_t probe_answer = 0;  // number to echo
  Psn first;                  // of our frames
};
static_assert(sizeof(AwakeChannel) == 256 && offsetof(AwakeChannel, out) == 48);

// Channels of a set by what they need, as slots. Who is in them knows it.
struct ChannelLists {
  std::vector<uint16_t> due;      // something to send, or a deadline to arm
  std::vector<uint16_t> waiting;  // somebody in line, or just no more
};

struct ChannelShared {
  ChannelShared(metrics::WorkerCounters& worker_counters, Owner& user)
      : counters(worker_counters), owner(user) {}

  metrics::WorkerCounters& counters;
  Owner& owner;
  uint32_t instance = 0;  // of the gateway
  uint16_t worker = 0;    // whose they are
  FleetKeys keys;         // of tags
  uint64_t sequence = 0;  // of the tagged control packet that was sent last
  uint32_t window = 0;    // packets that each takes ahead
  flow::CcConfig cc;      // but for its kind
  flow::LedgerPool ledgers;
  Shelf<AwakeChannel> awake;
  LocalAddresses sources;
  ChannelLists lists;
};

}  // namespace rocegw::channel
