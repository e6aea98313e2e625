// SPDX-License-Identifier: Apache-2.0
// Two channel sets with a network that the test controls: packets wait until they are delivered,
// and may be dropped, delayed or repeated; the test advances time. Queue pairs are only handles
// that hold a channel and send frames.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "gateway/channel/channel_set.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/gateway_mad.h"

namespace rocegw::testing {

// Channel packet in transit, as its receiver decodes it.
struct ChannelPacket {
  std::vector<uint8_t> bytes;
  wire::RxMeta meta;

  wire::RxPacket Decoded() const {
    wire::RxPacket packet;
    EXPECT_EQ(wire::Decode({meta, bytes}, packet), metrics::DropReason::kNone);
    return packet;
  }
  bool Is(wire::Operation operation) const { return Decoded().traits->operation == operation; }
  // Returns true for a control packet of that kind.
  bool Is(wire::ControlKind kind) const {
    return Is(wire::Operation::kChannelControl) && Control().kind == kind;
  }
  wire::ChannelControl Control() const {
    wire::ChannelControl control;
    EXPECT_EQ(wire::DecodeControl(Decoded().payload, control), metrics::DropReason::kNone);
    return control;
  }
};

inline ChannelPacket Sealed(port::TxPacket& packet) {
  wire::SealIcrc(packet.path, 7, packet.data, packet.length, packet.known_crc);
  ChannelPacket out;
  out.bytes.assign(packet.data, packet.data + packet.length + wire::kIcrcLength);
  out.meta.source = packet.path.source;
  out.meta.destination = packet.path.destination;
  out.meta.source_port = packet.path.source_port;
  out.meta.traffic_class = packet.path.traffic_class;
  out.meta.ip_id_known = true;
  out.meta.ip_id = 7;
  return out;
}

class ChannelEnd final : public channel::Owner {
 public:
  ChannelEnd(const wire::Gid& own, const channel::ChannelOptions& given)
      : gid(own), options(given) {
    set.Use(options, {}, {}, TimePoint{});
  }

  // channel::Owner
  port::TxPacket* NewChannelPacket(uint32_t) override {
    if (port_budget == 0) return nullptr;
    --port_budget;
    packet_ = port::TxPacket{.data = room_};
    return &packet_;
  }
  size_t MaxDatagram(uint32_t, const wire::Gid&) const override { return max_datagram; }
  void SendChannelPacket(uint32_t, port::TxPacket* packet) override { Transmit(*packet); }
  flow::Resend BuildAgain(const flow::Carrier& carrier, const flow::FrameRef& frame,
                          Psn psn) override {
    if (std::find(forgotten.begin(), forgotten.end(), frame.message) != forgotten.end())
      return flow::Resend::kVoid;
    SendFrameAs(carrier.address(), frame.message, psn);
    return flow::Resend::kDone;
  }
  void OnArrived(const flow::Carrier&, const flow::FrameRef& frame) override {
    arrived.push_back(frame.message);
  }
  void OnTurn(const flow::Carrier&, WorkerObject qp) override { turns.push_back(qp.slot().index); }
  void OnChannelGone(const flow::Carrier& carrier, bool was_open,
                     wire::ChannelReason reason) override {
    opened = was_open;
    why = reason;
    for (auto it = held.begin(); it != held.end();) {
      if (*it != &carrier) {
        ++it;
        continue;
      }
      (*it)->Release();
      it = held.erase(it);
      ++gone;
    }
  }
  void ArmChannel(uint32_t slot, TimePoint when) override { timers.push_back({slot, when}); }

  // Opens a channel as a queue pair does.
  channel::Channel* Reach(const ChannelEnd& peer, TimePoint now, uint8_t traffic_class = 0) {
    return set.Reach(TargetOf(peer), PathTo(peer, traffic_class), 77, 0, now);
  }
  // Returns the channel that Reach would return without opening one; nullptr: none.
  channel::Channel* Known(const ChannelEnd& peer, uint8_t traffic_class = 0) {
    return set.Known(TargetOf(peer), PathTo(peer, traffic_class), 77);
  }
  static verbs::ChannelTarget TargetOf(const ChannelEnd& peer) {
    verbs::ChannelTarget target;
    target.peer = peer.gid;
    target.acceptor = peer.options.acceptor;
    target.peer_worker = peer.options.worker;
    target.instance = peer.options.instance;
    return target;
  }
  wire::Path PathTo(const ChannelEnd& peer, uint8_t traffic_class) const {
    return {.source = gid, .destination = peer.gid, .traffic_class = traffic_class};
  }
  void Hold(channel::Channel* channel) {
    channel->Hold();
    held.push_back(channel);
  }
  // Sends a frame without payload, which tests recognise by its message number; false: it waits for
  // window.
  bool Send(channel::Channel& channel, uint32_t message, TimePoint now, uint32_t qp = 1,
            uint32_t tenant = 0, uint32_t bytes = 0) {
    const flow::WindowWaiter waiter{SlotHandle{qp, 0}, tenant};
    flow::WaitEntry& entry = Place(qp);
    if (!channel.MaySend(waiter, entry, bytes, now)) return false;
    const flow::FrameRef ref{.owner = SlotHandle{qp, 0},
                             .message = message,
                             .kind = static_cast<uint8_t>(wire::FrameKind::kReadRequest)};
    SendFrameAs(channel.address(), message, channel.OnSent(waiter, entry, ref, bytes, now));
    return true;
  }
  flow::WaitEntry& Place(uint32_t qp) {
    if (places.size() <= qp) places.resize(qp + 1);
    return places[qp];
  }

  metrics::DropReason Receive(const ChannelPacket& packet, TimePoint now) {
    channel::Delivery delivery;
    wire::RxPacket received = packet.Decoded();
    if (received.traits->operation == wire::Operation::kChannelSealed) {
      wire::RxPacket inner;
      const metrics::DropReason sealed = set.OpenSeal(0, received, now, inner);
      if (sealed != metrics::DropReason::kNone) return sealed;
      received = inner;
    }
    const metrics::DropReason reason = set.OnPacket(0, received, now, delivery);
    set.ForgetOpened();
    if (delivery.channel == nullptr) return reason;
    delivered.push_back(delivery.frame.message);
    if (delivery.frame.kind == wire::FrameKind::kReply) replies.push_back(delivery.frame);
    if (refuse) set.RefuseEndpoint(delivery, now);
    return reason;
  }
  void Turn(TimePoint now) {
    // Only due ones, by slot: a set that was handed over has armed its timers in another order.
    std::vector<Timer> due;
    std::erase_if(timers, [&](const Timer& timer) {
      if (timer.when > now) return false;
      due.push_back(timer);
      return true;
    });
    std::sort(due.begin(), due.end(),
              [](const Timer& x, const Timer& y) { return x.slot < y.slot; });
    for (const Timer& timer : due) set.OnTimer(timer.slot, now);
    set.Run(now, channel::Acks::kNow);
    set.GiveTurns(now);
  }
  // Writes the state of the set (gateway/hand_over).
  std::vector<uint8_t> Written(TimePoint now) {
    std::vector<uint8_t> bytes;
    const hand_over::StateVersions versions;
    hand_over::StateStream out(bytes, now, versions);
    set.HandOver(out);
    EXPECT_TRUE(out.ok()) << out.failure();
    return bytes;
  }
  // Replaces the set by one that reads the state, as if another gateway took over. Returns the
  // reason of a failure; nullptr: none. Channels of the old set are destroyed.
  const char* TakeOver(std::span<const uint8_t> bytes, TimePoint now) {
    std::vector<Qpn> users;
    for (channel::Channel* channel : held) {
      users.push_back(channel->number());
      channel->Release();
    }
    held.clear();
    timers.clear();
    std::destroy_at(&set);
    std::construct_at(&set, counters, *this);
    options.secret[0] += 1;
    set.Use(options, {}, {}, TimePoint{});
    hand_over::StateStream in(bytes, now);
    set.HandOver(in);
    if (!in.ok()) return in.failure();
    if (!in.at_end()) return "state is longer than what was read";
    for (const Qpn number : users)
      if (channel::Channel* const channel = set.Find(number); channel != nullptr) Hold(channel);
    set.ArmTimers(now);
    return nullptr;
  }
  TimePoint next() const {
    TimePoint when = kNever;
    for (const Timer& timer : timers) when = Earlier(when, timer.when);
    return when;
  }

  wire::Gid gid;
  channel::ChannelOptions options;
  metrics::WorkerCounters counters;
  std::deque<ChannelPacket> sent;
  std::vector<uint32_t> delivered;  // message numbers
  std::vector<wire::ChannelFrame> replies;
  std::vector<uint32_t> turns;
  std::vector<uint32_t> arrived;    // message numbers of frames
  std::vector<uint32_t> forgotten;  // message numbers of lost frames that were not rebuilt
  std::vector<channel::Channel*> held;
  std::vector<flow::WaitEntry> places;
  int gone = 0;
  // Set for the last closed channel.
  bool opened = false;
  wire::ChannelReason why = wire::ChannelReason::kNone;
  bool refuse = false;  // report that there is no endpoint
  uint32_t port_budget = 1u << 30;
  size_t max_datagram = 4200;
  struct Timer {
    uint32_t slot;
    TimePoint when;
  };
  std::vector<Timer> timers;
  channel::ChannelSet set{counters, *this};

 private:
  void SendFrameAs(const flow::CarrierAddress& to, uint32_t message, Psn psn) {
    wire::ChannelFrame frame{.kind = wire::FrameKind::kReadRequest,
                             .flags = wire::kFrameLast,
                             .epoch = to.epoch,
                             .destination = Qpn{0x44},
                             .source = Qpn{0x33},
                             .message = message};
    port::TxPacket packet{.data = room_};
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelFrame;
    headers.bth.dest_qpn = to.channel;
    headers.bth.psn = psn;
    headers.bth.set_hint(to.hint);
    size_t length = wire::EncodeHeaders(headers, packet.data);
    length += wire::EncodeFrame(frame, packet.data + length);
    packet.length = static_cast<uint32_t>(length);
    packet.path = to.path;
    packet.seal = to.seal;
    Transmit(packet);
  }
  // Seals as the worker's transmit queue does.
  void Transmit(port::TxPacket& packet) {
    if (packet.seal != 0 && !set.Seal(packet)) return;
    sent.push_back(Sealed(packet));
  }

  uint8_t room_[4300];
  port::TxPacket packet_;
};

class ChannelPair {
 public:
  static channel::ChannelOptions OptionsOf(uint32_t side) {
    channel::ChannelOptions options;
    options.acceptor = Qpn{0x1000 + side};
    for (uint32_t i = 0; i < 16; ++i) options.numbers.push_back(Qpn{0x2000 + side * 0x100 + i});
    options.instance = 100 + side;
    options.worker = static_cast<uint16_t>(side);
    options.features = wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcMask;
    options.secret = {11 + side, 22};
    return options;
  }
  ChannelPair() : ChannelPair(OptionsOf(0), OptionsOf(1)) {}
  ChannelPair(const channel::ChannelOptions& a, const channel::ChannelOptions& b)
      : ends{std::make_unique<ChannelEnd>(GidOf(0), a), std::make_unique<ChannelEnd>(GidOf(1), b)} {
  }
  ~ChannelPair() {
    for (const auto& end : ends) {
      for (channel::Channel* channel : end->held) channel->Release();
    }
  }

  static wire::Gid GidOf(uint32_t side) { return wire::Gid::FromV4(0xC0000201 + side); }
  ChannelEnd& a() { return *ends[0]; }
  ChannelEnd& b() { return *ends[1]; }

  // Replaces a side by another instance with the same address: it knows nothing of the old one.
  void Restart(int side) {
    channel::ChannelOptions options = ends[side]->options;
    options.instance += 1000;
    options.secret[0] += 1000;
    for (channel::Channel* channel : ends[side]->held) channel->Release();
    ends[side] = std::make_unique<ChannelEnd>(GidOf(static_cast<uint32_t>(side)), options);
  }

  // Carries over what waits, and what follows from it, until nothing moves; `lose` says which.
  void Settle(const std::function<bool(const ChannelPacket&)>& lose = {}) {
    for (int i = 0; i < 1000; ++i) {
      a().Turn(now);
      b().Turn(now);
      if (a().sent.empty() && b().sent.empty()) return;
      for (int side = 0; side < 2; ++side) {
        std::deque<ChannelPacket> on_the_way = std::move(ends[side]->sent);
        ends[side]->sent.clear();
        for (const ChannelPacket& packet : on_the_way) {
          if (lose && lose(packet)) continue;
          last_drop = ends[1 - side]->Receive(packet, now);
        }
      }
    }
    ADD_FAILURE() << "it does not come to rest";
  }
  // Time moves, timer by timer.
  void Advance(Duration by, const std::function<bool(const ChannelPacket&)>& lose = {}) {
    const TimePoint end = now + by;
    Settle(lose);
    for (int i = 0; i < 100000; ++i) {
      const TimePoint next = std::max(now, Earlier(a().next(), b().next()));
      if (next > end) break;
      now = next;
      Settle(lose);
    }
    now = end;
    Settle(lose);
  }
  // Opens a channel on both ends; the first end uses it.
  channel::Channel* Open() {
    channel::Channel* channel = a().Reach(b(), now);
    EXPECT_NE(channel, nullptr);
    a().Hold(channel);
    Settle();
    EXPECT_EQ(channel->state(), channel::ChannelState::kOpen);
    return channel;
  }

  TimePoint now{1'000'000'000};
  metrics::DropReason last_drop = metrics::DropReason::kNone;
  std::unique_ptr<ChannelEnd> ends[2];
};

}  // namespace rocegw::testing
