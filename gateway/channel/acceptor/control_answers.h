// SPDX-License-Identifier: Apache-2.0
// Answers to packets that belong to no channel: resets, refusals, and requests to open again with a
// cookie. Strangers cause them, so each kind has a rate. Belongs to its ChannelSet.
#pragma once

#include <cstdint>

#include "gateway/base/timing/token_bucket.h"
#include "gateway/channel/acceptor/open_cookies.h"
#include "gateway/channel/channel.h"

namespace rocegw::channel {

class ControlAnswers {
 public:
  ControlAnswers(metrics::WorkerCounters& counters, ChannelShared& shared)
      : counters_(counters), shared_(shared) {}
  // `acceptor`: source of the answers. `rate`: resets and refusals per second.
  void Use(Qpn acceptor, uint32_t rate, const OpenCookies& cookies);

  // Sends a reset. `epoch`, `peer_epoch`: of receiver and sender as the answered packet states
  // them. `tagged`: that packet had a tag, so its sender knows tags.
  void SendReset(uint32_t device, const wire::RxPacket& packet, Qpn to, uint32_t epoch,
                 uint32_t peer_epoch, bool tagged, TimePoint now);
  void SendRefused(uint32_t device, const wire::RxPacket& packet,
                   const wire::ChannelControl& control, wire::ChannelReason why, TimePoint now);
  // Asks the sender of an opening to repeat it with a cookie. Returns false if there are too many.
  bool SendRetry(uint32_t device, const wire::RxPacket& packet, const wire::ChannelControl& control,
                 TimePoint now);
  // Returns true if the opening repeats a cookie, so that its sender's address is proved.
  bool IsProven(const wire::RxPacket& packet, const wire::ChannelControl& control,
                TimePoint now) const {
    return cookies_.IsProven(packet.meta.source, packet.meta.destination, control, now);
  }

  // Writes or reads the state (hand_over/channel_set_state.cc).
  void HandOver(hand_over::StateStream& state);

 private:
  static constexpr double kBurst = 64;

  bool MaySend(TimePoint now);
  void Send(uint32_t device, const wire::RxPacket& packet, Qpn to,
            const wire::ChannelControl& control);

  metrics::WorkerCounters& counters_;
  ChannelShared& shared_;
  Qpn acceptor_ = kInvalidQpn;
  uint32_t rate_ = 0;
  OpenCookies cookies_;
  // Bounds the work that a flood of openings causes: each retry is a datagram to another address.
  // Openings with a tag have a rate of their own, so that strangers shut out no member.
  TokenBucket retries_{5'000, 256};
  TokenBucket retries_of_members_{5'000, 256};
  double tokens_ = 0;
  TimePoint time_;
};

}  // namespace rocegw::channel
