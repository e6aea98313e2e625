// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/acceptor/control_answers.h"

#include <algorithm>

#include "gateway/port/steering.h"

namespace rocegw::channel {

using wire::ChannelControl;
using wire::ChannelReason;
using wire::ControlKind;

void ControlAnswers::Use(Qpn acceptor, uint32_t rate, const OpenCookies& cookies) {
  acceptor_ = acceptor;
  rate_ = rate;
  cookies_ = cookies;
}

bool ControlAnswers::MaySend(TimePoint now) {
  tokens_ = std::min(kBurst, tokens_ + static_cast<double>((now - time_).ns) * 1e-9 * rate_);
  time_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

void ControlAnswers::SendReset(uint32_t device, const wire::RxPacket& packet, Qpn to,
                               uint32_t epoch, uint32_t peer_epoch, bool tagged, TimePoint now) {
  if (!MaySend(now)) return;
  Send(device, packet, to,
       {.kind = ControlKind::kReset,
        .reason = ChannelReason::kUnknownChannel,
        .channel = packet.headers.bth.dest_qpn.value,
        .epoch = epoch,
        .peer_epoch = peer_epoch,
        .instance = shared_.instance,
        .tagged = tagged});
}

void ControlAnswers::SendRefused(uint32_t device, const wire::RxPacket& packet,
                                 const ChannelControl& control, ChannelReason why, TimePoint now) {
  if (!MaySend(now)) return;
  Send(device, packet, Qpn{control.channel},
       {.kind = ControlKind::kRefused,
        .reason = why,
        .peer_epoch = control.epoch,
        .instance = shared_.instance,
        .tagged = control.tagged});
}

bool ControlAnswers::SendRetry(uint32_t device, const wire::RxPacket& packet,
                               const ChannelControl& control, TimePoint now) {
  if (!(control.tagged ? retries_of_members_ : retries_).Take(now)) return false;
  counters_.channel_retry_events.Add();
  Send(device, packet, Qpn{control.channel},
       {.kind = ControlKind::kRetry,
        .epoch = cookies_.Make(packet.meta.source, packet.meta.destination, control, now),
        .peer_epoch = control.epoch,
        .instance = shared_.instance,
        .tagged = control.tagged});
  return true;
}

void ControlAnswers::Send(uint32_t device, const wire::RxPacket& packet, Qpn to,
                          const ChannelControl& control) {
  const wire::Path path{.source = packet.meta.destination,
                        .destination = packet.meta.source,
                        .source_port = port::SourcePort(0, to)};
  SendControlPacket(shared_, device, path, to, acceptor_, control);
}

}  // namespace rocegw::channel
