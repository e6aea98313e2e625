// SPDX-License-Identifier: Apache-2.0
// State of a channel that is in use, and the state that all channels of a worker share. A resting
// channel keeps only the fields of channel.h. AwakeChannel blocks come from the worker's object
// pool, so memory follows the number of channels in use. Belongs to a ChannelSet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/base/containers/free_list.h"
#include "gateway/base/fleet_keys.h"
#include "gateway/channel/local_addresses.h"
#include "gateway/channel/owner.h"
#include "gateway/channel/protection/protected_channels.h"
#include "gateway/channel/wait_queue.h"
#include "gateway/flow/receive_window.h"
#include "gateway/flow/selective_flow.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/wire/congestion_hint.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::channel {

// Control packets and acknowledgements that the channel must send next; one bit each.
enum DueBit : uint8_t {
  kDueOpen = 1,
  kDueOpened = 2,
  kDueProbe = 4,
  kDueClose = 8,
  kDueClosed = 16,
};

inline constexpr Duration kFirstOpenResend = Milliseconds(5);
inline constexpr Duration kLastOpenResend = Milliseconds(160);

// Fields in order of use: frames and acknowledgements touch the first three cache lines, up to the
// sender's congestion control. The fourth holds losses, probes, the handshake and the wait queue.
struct alignas(64) AwakeChannel {
  uint8_t due = 0;             // DueBits
  uint8_t probes_heard = 0;    // probes from the peer since anything else arrived
  bool answers_probe = false;  // the next acknowledgement answers a probe
  bool narrow = false;         // the next acknowledgement allows few frames
  wire::HintMeter hints;       // congestion hints of received frames
  flow::ReceiveWindow in;
  TimePoint armed = kNever;  // deadline in the worker's timer wheel
  flow::SelectiveFlow out;

  WaitQueue wait_queue;
  TimePoint handshake_at = kNever;
  // Time since when no queue pair uses the channel, or a later time; creation time until the
  // channel opens. kNever: not noted yet.
  TimePoint idle_since = kNever;
  Duration open_resend = kFirstOpenResend;
  uint32_t probe_answer = 0;  // probe number to echo
  Psn first;                  // first PSN of our frames

  // Writes the state, or reads it into a new block (gateway/hand_over).
  void HandOver(hand_over::StateStream& state, flow::LedgerPool& pool,
                const flow::CcProfile& profile);
};
static_assert(sizeof(AwakeChannel) == 256 && offsetof(AwakeChannel, out) == 48);

// Slots of a set's channels that need work. Each channel has a flag that says if it is in a list.
struct ChannelLists {
  std::vector<uint16_t> due;      // a packet to send, or a deadline to arm
  std::vector<uint16_t> waiting;  // wait queue not empty, or just emptied
};

struct ChannelShared {
  ChannelShared(metrics::WorkerCounters& worker_counters, Owner& user)
      : counters(worker_counters), owner(user) {}

  metrics::WorkerCounters& counters;
  Owner& owner;
  uint32_t instance = 0;  // instance number of the gateway
  uint16_t worker = 0;    // index of the worker
  FleetKeys keys;         // keys that make the tags
  uint64_t sequence = 0;  // sequence number of the last tagged control packet
  uint32_t window = 0;    // packets that each receiver accepts ahead of a gap
  flow::CcConfig cc;      // for every channel, except its kind
  flow::LedgerPool ledgers;
  FreeList<AwakeChannel> awake;
  LocalAddresses sources;
  ProtectedChannels protections{counters, keys};
  ChannelLists lists;
};

}  // namespace rocegw::channel
