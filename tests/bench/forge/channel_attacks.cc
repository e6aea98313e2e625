// SPDX-License-Identifier: Apache-2.0
// Forged packets at a channel between gateways, without and with protection (gateways.protection):
// a production channel set decodes and takes them. At the end of each attack that changed nothing
// the whole state of the set, as it is written for a take-over, must be what it was.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "gateway/cipher/openssl_ciphers.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/seal/sealed_datagram.h"
#include "tests/bench/forge/attack.h"
#include "tests/support/channel/channel_pair.h"

namespace rocegw::bench {
namespace {

using channel::Channel;
using metrics::DropReason;
using testing::ChannelEnd;
using testing::ChannelPair;
using testing::Random;

const FrameCiphers& Ciphers() {
  static const cipher::OpensslCiphers ciphers;
  return ciphers;
}

channel::ChannelOptions OptionsOf(uint32_t side, Random& random) {
  channel::ChannelOptions options = ChannelPair::OptionsOf(side);
  options.numbers = {Qpn{static_cast<uint32_t>(random.Between(0x10000, 0xFFFF00))}};
  options.secret = {random.Bits(), random.Bits()};
  return options;
}

// Fields that the attacker knows.
enum Known : uint8_t { kAddress = 1, kNumber = 2, kEpoch = 4, kPsn = 8, kPeerEpoch = 16 };

class ChannelVictim {
 public:
  ChannelVictim(bool sealed, Random& random) : random_(random), sealed_(sealed) { Open(); }

  Outcome Frames(uint64_t count, uint8_t known) {
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelFrame;
    return Send(count, known, [&](Forged& out) {
      // Without a queue pair, so that the channel alone decides.
      wire::ChannelFrame frame;
      frame.epoch = (known & kEpoch) != 0 ? victim_->epoch16() : random_.Value<uint16_t>();
      std::array<uint8_t, wire::kMaxFrameLength> body;
      headers.bth.dest_qpn = NumberOf(known);
      headers.bth.psn = (known & kPsn) != 0 ? next_ : Psn(Any24(random_));
      Forge(SourceOf(known), Own(), headers,
            std::span(body).first(wire::EncodeFrame(frame, body.data())), out);
    });
  }

  // Acknowledges random PSNs while the victim has frames in flight.
  Outcome Acknowledgements(uint64_t count, uint8_t known, uint32_t in_flight) {
    in_flight_ = in_flight;
    Launch();
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelAck;
    return Send(count, known, [&](Forged& out) {
      wire::ChannelAck ack;
      ack.epoch = (known & kEpoch) != 0 ? victim_->epoch16() : random_.Value<uint16_t>();
      ack.room = 1;
      std::array<uint8_t, wire::kChannelAckLength> body;
      headers.bth.dest_qpn = NumberOf(known);
      headers.bth.psn = Psn(Any24(random_));
      Forge(SourceOf(known), Own(), headers,
            std::span(body).first(wire::EncodeAck(ack, body.data())), out);
    });
  }

  Outcome Controls(uint64_t count, wire::ControlKind kind, uint8_t known, bool tagged = false) {
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelControl;
    return Send(count, known, [&](Forged& out) {
      wire::ChannelControl control;
      control.kind = kind;
      control.reason = kind == wire::ControlKind::kReset ? wire::ChannelReason::kUnknownChannel
                                                         : wire::ChannelReason::kIdle;
      control.channel = (known & kNumber) != 0 ? victim_->peer_number().value : Any24(random_);
      control.epoch = (known & kPeerEpoch) != 0 ? victim_->peer_epoch() : random_.Value<uint32_t>();
      control.peer_epoch = (known & kEpoch) != 0 ? victim_->epoch() : random_.Value<uint32_t>();
      control.instance = set().options.instance;
      control.tagged = tagged;
      if (tagged) {
        control.sequence = 1'000'000 + random_.Below(1'000'000);
        control.tag = random_.Bits();
      }
      std::array<uint8_t, wire::kMaxControlLength> body;
      headers.bth.dest_qpn = NumberOf(known);
      Forge(SourceOf(known), Own(), headers,
            std::span(body).first(wire::EncodeControl(control, body.data())), out);
    });
  }

  // Sends a datagram of the peer that the victim has not received, with another tag.
  Outcome Tags(uint64_t count) {
    if (!pair_->a().Send(*peer_, 5, pair_->now)) std::abort();
    const testing::ChannelPacket recorded = pair_->a().sent.back();
    pair_->a().sent.clear();
    return Send(count, 0, [&](Forged& out) {
      out.length = recorded.bytes.size();
      std::copy(recorded.bytes.begin(), recorded.bytes.end(), out.bytes.begin());
      // Tag and ICRC end the datagram.
      const size_t end = out.length - wire::kIcrcLength;
      for (size_t i = end - FrameKey::kTagLength; i < end; ++i)
        out.bytes[i] = random_.Value<uint8_t>();
      out.meta = recorded.meta;
      wire::SealIcrc({.source = out.meta.source,
                      .destination = out.meta.destination,
                      .source_port = out.meta.source_port,
                      .traffic_class = out.meta.traffic_class},
                     out.meta.ip_id, out.bytes.data(), end);
    });
  }

 private:
  ChannelEnd& set() { return pair_->b(); }
  static wire::Gid Own() { return ChannelPair::GidOf(1); }
  wire::Gid SourceOf(uint8_t known) {
    return (known & kAddress) != 0 ? ChannelPair::GidOf(0) : AnyAddress(random_);
  }
  Qpn NumberOf(uint8_t known) {
    return (known & kNumber) != 0 ? victim_->number() : Qpn{Any24(random_)};
  }

  // Opens a channel that both ends use, and sends one frame each way.
  void Open() {
    pair_.emplace(OptionsOf(0, random_), OptionsOf(1, random_));
    verbs::ChannelTarget target = ChannelEnd::TargetOf(pair_->b());
    if (sealed_) {
      const FleetKeys keys{.count = 1,
                           .keys = {{{1, 2}}},
                           .protection = FrameProtection::kPreferred,
                           .ciphers = &Ciphers()};
      pair_->a().set.SetKeys(keys);
      pair_->b().set.SetKeys(keys);
      target.features = wire::kOptionAuthentication | wire::kOptionSealing;
    }
    peer_ = pair_->a().set.Reach(target, pair_->a().PathTo(pair_->b(), 0), 77, 0, pair_->now);
    if (peer_ == nullptr) std::abort();
    pair_->a().Hold(peer_);
    pair_->Settle();
    victim_ = set().Known(pair_->a());
    if (victim_ == nullptr || victim_->sealed() != sealed_) std::abort();
    set().Hold(victim_);
    if (!pair_->a().Send(*peer_, 1, pair_->now) || !set().Send(*victim_, 2, pair_->now))
      std::abort();
    // The PSN that the victim expects next is behind that of the frame.
    pair_->Settle([&](const testing::ChannelPacket& packet) {
      const bool from_peer = packet.meta.source == ChannelPair::GidOf(0);
      if (from_peer && packet.Is(wire::Operation::kChannelFrame))
        next_ = packet.Decoded().headers.bth.psn + 1;
      return false;
    });
  }

  // Sends frames that the peer does not get.
  void Launch() {
    const size_t before = set().sent.size();
    for (uint32_t i = 0; i < in_flight_; ++i) {
      if (!set().Send(*victim_, 10 + i, pair_->now)) std::abort();
    }
    if (in_flight_ != 0) first_ = set().sent.at(before).Decoded().headers.bth.psn;
    set().sent.clear();
  }

  template <typename Make>
  Outcome Send(uint64_t count, uint8_t known, const Make& make) {
    Outcome outcome;
    const bool may_answer = (known & kAddress) != 0 && (known & kNumber) != 0;
    std::vector<uint8_t> before = set().Written(pair_->now);
    for (; outcome.sent < count; ++outcome.sent) {
      make(forged_);
      const uint64_t frames = set().counters.channel_rx_packets.Read();
      Take();
      const bool ended = victim_->state() != channel::ChannelState::kOpen;
      const bool acknowledged = !ended && in_flight_ != 0 && victim_->HasArrived(first_);
      if (may_answer && set().set.busy()) set().set.Run(pair_->now, channel::Acks::kNow);
      outcome.answered += set().sent.size();
      set().sent.clear();
      if (ended) {
        outcome.Add(Change::kChannel);
      } else if (set().counters.channel_rx_packets.Read() != frames) {
        outcome.Add(Change::kSequence);
      } else if (acknowledged) {
        outcome.Add(Change::kAcknowledged);
      } else {
        continue;
      }
      Open();
      Launch();
      before = set().Written(pair_->now);
    }
    if (!may_answer && set().Written(pair_->now) != before) outcome.Add(Change::kState);
    return outcome;
  }

  void Take() {
    wire::RxPacket packet;
    if (wire::Decode(forged_.datagram(), packet) != DropReason::kNone) std::abort();
    channel::Delivery delivery;
    if (packet.traits->operation == wire::Operation::kChannelSealed) {
      wire::RxPacket inner;
      if (set().set.OpenSeal(0, packet, pair_->now, inner) == DropReason::kNone)
        (void)set().set.OnPacket(0, inner, pair_->now, delivery);
      set().set.ForgetOpened();
    } else {
      (void)set().set.OnPacket(0, packet, pair_->now, delivery);
    }
  }

  Random& random_;
  const bool sealed_;
  std::optional<ChannelPair> pair_;
  Channel* peer_ = nullptr;
  Channel* victim_ = nullptr;
  Psn next_;   // the PSN that the victim expects
  Psn first_;  // of the victim's frames in flight
  uint32_t in_flight_ = 0;
  Forged forged_;
};

Attack FramesOf(const char* knows, uint8_t known, const Expected& expected) {
  return {"channel", "frame", knows, expected, [=](uint64_t count, Random& random) {
            return ChannelVictim(false, random).Frames(count, known);
          }};
}

constexpr uint32_t kInFlight = 32;

Attack AcknowledgementsOf(const char* knows, uint8_t known, double bits) {
  return {"channel", "acknowledgement, 32 frames", knows, Expected{bits},
          [=](uint64_t count, Random& random) {
            return ChannelVictim(false, random).Acknowledgements(count, known, kInFlight);
          }};
}

Attack ControlsOf(const char* packet, wire::ControlKind kind, const char* knows, uint8_t known,
                  const Expected& expected) {
  return {"channel", packet, knows, expected, [=](uint64_t count, Random& random) {
            return ChannelVictim(false, random).Controls(count, kind, known);
          }};
}

}  // namespace

std::vector<Attack> ChannelAttacks() {
  using wire::ControlKind;
  constexpr uint8_t kAll = kAddress | kNumber | kEpoch | kPsn | kPeerEpoch;
  constexpr double kEpochBits = 16;
  // The victim takes 4,096 PSNs.
  constexpr double kWindowBits = kPsnBits - 12;
  constexpr double kFrameBits = kEpochBits + kWindowBits;
  constexpr double kControlEpochBits = 32;
  constexpr uint8_t kNumbered = kAddress | kNumber;
  // Beside frames stands a WRITE at an RNIC, whose QPN costs no guesses, and data of TCP. RNICs and
  // TCP have no epoch, so that rows that tell it apart have no counterpart.
  return {
      FramesOf("nothing", 0,
               {kAddressBits + kNumberBits + kFrameBits, kAddressBits + kPsnBits,
                kAddressBits + kTcpPortBits + kTcpDataBits}),
      FramesOf("address", kAddress,
               {kNumberBits + kFrameBits, kPsnBits, kTcpPortBits + kTcpDataBits}),
      FramesOf("address, number", kNumbered, {kFrameBits, kPsnBits, kTcpDataBits}),
      FramesOf("all but the address", kAll & ~kAddress, {kAddressBits, kAddressBits, kAddressBits}),
      FramesOf("all but the number", kAll & ~kNumber, {kNumberBits, 0, kTcpPortBits}),
      FramesOf("all but the epoch", kAll & ~kEpoch, {kEpochBits}),
      FramesOf("all but the PSN", kAll & ~kPsn, {kWindowBits}),
      FramesOf("everything", kAll, {0, 0, 0}),
      AcknowledgementsOf("address, number", kNumbered, kEpochBits + kPsnBits - 5),
      AcknowledgementsOf("all but the PSN", kAll & ~kPsn, kPsnBits - 5),
      ControlsOf("reset", ControlKind::kReset, "address", kAddress,
                 {kNumberBits + 2 * kControlEpochBits, kPsnBits, kTcpPortBits + kTcpResetBits}),
      ControlsOf("reset", ControlKind::kReset, "address, numbers", kNumbered,
                 {2 * kControlEpochBits, kPsnBits, kTcpResetBits}),
      ControlsOf("reset", ControlKind::kReset, "all but one epoch", kNumbered | kPeerEpoch,
                 {kControlEpochBits}),
      ControlsOf("reset", ControlKind::kReset, "everything", kAll, {0, 0, 0}),
      ControlsOf("closed", ControlKind::kClosed, "address, numbers", kNumbered,
                 {kControlEpochBits, kPsnBits, kTcpDataBits}),
      {"sealed", "frame without a seal", "everything but the key", Expected{kNever, 0, 0},
       [=](uint64_t count, Random& random) {
         return ChannelVictim(true, random).Frames(count, kAll);
       }},
      {"sealed", "sealed frame, random tag", "everything but the key", Expected{128, 0, 0},
       [](uint64_t count, Random& random) { return ChannelVictim(true, random).Tags(count); }},
      {"sealed", "reset, random tag", "everything but the key", Expected{64, 0, 0},
       [=](uint64_t count, Random& random) {
         return ChannelVictim(true, random).Controls(count, ControlKind::kReset, kAll, true);
       }},
  };
}

}  // namespace rocegw::bench
