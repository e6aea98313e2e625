// SPDX-License-Identifier: Apache-2.0
// Attacks by an attacker who has learned numbers of the victim, as an oracle or a capture would
// tell, and sends from the address of the victim's peer.
#include <cstdlib>
#include <random>
#include <vector>

#include "gateway/wire/channel_header.h"
#include "tests/bench/hostile/attach.h"
#include "tests/bench/hostile/sender.h"

namespace rocegw::bench {
namespace {

// Resets channels whose numbers are known, with every 16-bit epoch.
void KnownChannelResets(int count, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  std::minstd_rand random(1);
  std::vector<uint32_t> channels;
  for (int i = 2; i < count; ++i)
    channels.push_back(static_cast<uint32_t>(std::atol(arguments[i])));
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kChannelControl;
  Bytes body(wire::kChannelControlLength);
  for (uint32_t epoch = 0;; ++epoch) {
    for (const uint32_t channel : channels) {
      wire::ChannelControl control;
      control.kind = wire::ControlKind::kReset;
      control.reason = wire::ChannelReason::kUnknownChannel;
      control.channel = channel;
      control.epoch = epoch;
      control.peer_epoch = static_cast<uint32_t>(random());
      wire::EncodeControl(control, body.data());
      headers.bth.dest_qpn = Qpn{channel & 0xFFFFFF};
      sender.Send(headers, body);
    }
  }
}

// Frames into channels whose numbers are known, with every 16-bit epoch and any PSN.
void KnownChannelFrames(int count, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  std::minstd_rand random(1);
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kChannelFrame;
  for (uint32_t epoch = 0;; ++epoch) {
    for (int i = 2; i < count; ++i) {
      wire::ChannelFrame frame;
      frame.epoch = static_cast<uint16_t>(epoch);
      Bytes body(wire::kMaxFrameLength);
      body.resize(wire::EncodeFrame(frame, body.data()));
      headers.bth.dest_qpn = Qpn{static_cast<uint32_t>(std::atol(arguments[i])) & 0xFFFFFF};
      headers.bth.psn = Psn(static_cast<uint32_t>(random()) & 0xFFFFFF);
      sender.Send(headers, body);
    }
  }
}

// Asks for connections as the victim's queue pairs, as if their host had forgotten the old ones.
// The first number is the host's CA GUID, the others are queue pair numbers.
void StaleRequests(int count, char** arguments) {
  Sender sender(arguments[0], arguments[1]);
  wire::CmReq request;
  request.primary.local_gid = sender.path().source;
  request.primary.remote_gid = sender.path().destination;
  request.primary.hop_limit = 64;
  request.local_ca_guid = std::strtoull(arguments[2], nullptr, 0);
  request.path_mtu = 3;
  request.local_response_timeout = request.remote_response_timeout = 20;
  wire::EncodeIpCm({4, 4000, sender.path().source, sender.path().destination},
                   std::span<uint8_t, wire::kIpCmHeaderLength>(request.private_data.data(),
                                                               wire::kIpCmHeaderLength));
  request.service_id = wire::IpServiceId(0x0106, 7);
  for (uint32_t number = 0x10000;;) {
    for (int i = 3; i < count; ++i) {
      request.local_comm_id = ++number;
      request.local_qpn = Qpn{static_cast<uint32_t>(std::atol(arguments[i])) & 0xFFFFFF};
      wire::MadBytes bytes;
      wire::EncodeMad({.transaction_id = number, .body = request}, bytes);
      sender.SendMad(bytes);
    }
  }
}

constexpr Attack kAttacks[] = {
    {"known_channel_resets", KnownChannelResets},
    {"known_channel_frames", KnownChannelFrames},
    {"stale_requests", StaleRequests},
};

}  // namespace

constinit const std::span<const Attack> kForgedAttacks(kAttacks);

}  // namespace rocegw::bench
