// SPDX-License-Identifier: Apache-2.0
// Two gateways on one cable whose RC queue pairs share a channel, for tests of single frames: sent
// and received packets are recorded as frames, and fault rules match frames. Owned by a test; one
// thread; memory addresses are offsets in a side's memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "gateway/wire/channel_header.h"
#include "gateway/wire/opcode.h"
#include "tests/sim/host/host.h"

namespace rocegw::sim {

// Decodes the frame in a packet. Returns false if it is not a frame, or a damaged one.
inline bool FrameIn(const Packet& packet, wire::ChannelFrame& frame,
                    std::span<const uint8_t>& payload) {
  if (packet.opcode() != static_cast<uint8_t>(wire::Opcode::kChannelFrame)) return false;
  const size_t pad = packet.data[1] >> 4 & 3;
  const std::span<const uint8_t> body = packet.bytes().subspan(
      wire::kBthLength, packet.size - wire::kBthLength - wire::kIcrcLength - pad);
  return wire::DecodeFrame(body, frame, payload) == metrics::DropReason::kNone;
}

struct SeenFrame {
  TimePoint at;
  LinkEvent event = LinkEvent::kLeaves;
  uint32_t psn = 0;
  wire::ChannelFrame frame;
  uint32_t payload = 0;  // bytes
};

struct TwoGatewaysOptions {
  uint64_t seed = 1;
  LinkConfig cable{.delay = Microseconds(2)};
  HostConfig host{.memory_bytes = 8 << 20};
  ConnectionOptions connection{.path_mtu = 3, .channel = true};
};

class TwoGateways {
 public:
  explicit TwoGateways(const TwoGatewaysOptions& options = {})
      : options_(options),
        network({.seed = options.seed}),
        hosts{{network, 1, Config(options)}, {network, 2, Config(options)}},
        wiring(WirePair(network, hosts[0], hosts[1], options.cable)) {}

  struct Pair {
    RingEnd& a;
    RingEnd& b;
  };
  Pair Connect() { return Connect(options_.connection); }
  Pair Connect(const ConnectionOptions& connection) {
    const uint32_t number = ++pairs_;
    RingEnd& a = hosts[0].AddQp({.qpn = 100 + number, .handle = number, .placement = true});
    RingEnd& b = hosts[1].AddQp({.qpn = 5000 + number, .handle = number, .placement = true});
    Host::Connect(hosts[0], a, hosts[1], b, connection);
    return {a, b};
  }

  struct Request {
    uint8_t opcode = ROCEGW_WR_SEND;
    uint64_t local = 0;
    uint32_t length = 0;
    uint64_t remote = 0;
    uint8_t flags = 0;
    uint64_t compare_add = 0;
    uint64_t swap = 0;
    uint64_t id = 0;
    uint32_t wrong_key = 0;  // added to the remote key
  };
  void Post(int side, RingEnd& end, const Request& request) {
    rocegw_send_wqe wqe{};
    wqe.opcode = request.opcode;
    wqe.flags = request.flags | ROCEGW_WQE_SIGNALED;
    wqe.wr_id = request.id;
    wqe.u.rdma.remote_address = Host::kBase + request.remote;
    wqe.u.rdma.rkey = hosts[1 - side].key() + request.wrong_key;
    wqe.u.rdma.compare_add = request.compare_add;
    wqe.u.rdma.swap = request.swap;
    RingEnd::Sges sges;
    if (request.length != 0)
      sges.push_back({Host::kBase + request.local, request.length, hosts[side].key()});
    ASSERT_TRUE(end.PostSend(wqe, sges));
    hosts[side].Ring(end);
  }
  void PostReceive(int side, RingEnd& end, uint64_t id, uint64_t local, uint32_t length) {
    ASSERT_TRUE(end.PostReceive(id, {{Host::kBase + local, length, hosts[side].key()}}));
  }
  // Returns `count` completions, or fewer if the time is up.
  std::vector<rocegw_cqe> Await(RingEnd& end, size_t count, Duration most = Seconds(10)) {
    std::vector<rocegw_cqe> all;
    const TimePoint limit = network.now() + most;
    do {
      for (const rocegw_cqe& cqe : end.Poll()) all.push_back(cqe);
    } while (all.size() < count && network.RunOne(limit));
    EXPECT_EQ(all.size(), count);
    return all;
  }
  // Fills memory with the bytes of the stream.
  void Fill(int side, uint64_t at, uint64_t length, uint64_t stream) {
    for (uint64_t i = 0; i < length; ++i) memory(side)[at + i] = Byte(stream, i);
  }
  bool Holds(int side, uint64_t at, uint64_t length, uint64_t stream) {
    for (uint64_t i = 0; i < length; ++i)
      if (memory(side)[at + i] != Byte(stream, i)) return false;
    return true;
  }
  uint64_t Word(int side, uint64_t at) {
    uint64_t word = 0;
    std::memcpy(&word, &memory(side)[at], sizeof word);
    return word;
  }
  void SetWord(int side, uint64_t at, uint64_t word) {
    std::memcpy(&memory(side)[at], &word, sizeof word);
  }
  std::span<uint8_t> memory(int side) { return hosts[side].memory(); }
  uint64_t Count(int side, metrics::Counter metrics::WorkerCounters::*counter) const {
    return hosts[side].Count(counter);
  }

  // Records the frames that side `from` sends from now on.
  std::vector<SeenFrame>& Record(int from) {
    wiring.up[static_cast<size_t>(from)]->Watch(
        [this, from](LinkEvent event, const Packet& packet) {
          SeenFrame seen{.at = network.now(), .event = event, .psn = packet.psn()};
          std::span<const uint8_t> payload;
          if (!FrameIn(packet, seen.frame, payload)) return;
          seen.payload = static_cast<uint32_t>(payload.size());
          seen_[from].push_back(seen);
        });
    return seen_[from];
  }
  // Applies the fault to one matching frame, after skipping `skip`.
  template <typename F>
  size_t Hurt(int from, FaultKind kind, uint64_t skip, F matches,
              Duration delay = Microseconds(50)) {
    FaultRule rule{.kind = kind, .skip = skip, .delay = delay};
    rule.where = [matches](const Packet& packet) {
      wire::ChannelFrame frame;
      std::span<const uint8_t> payload;
      return FrameIn(packet, frame, payload) && matches(frame);
    };
    return wiring.up[static_cast<size_t>(from)]->faults().Add(std::move(rule));
  }

 private:
  static HostConfig Config(const TwoGatewaysOptions& options) {
    HostConfig config = options.host;
    config.channels = true;
    return config;
  }
  static uint8_t Byte(uint64_t stream, uint64_t i) {
    return static_cast<uint8_t>(stream * 37 + i * 7 + i / 251);
  }

  const TwoGatewaysOptions options_;
  uint32_t pairs_ = 0;
  std::vector<SeenFrame> seen_[2];

 public:
  Network network;
  Host hosts[2];
  Wiring wiring;
};

}  // namespace rocegw::sim
