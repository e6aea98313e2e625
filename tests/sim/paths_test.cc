// SPDX-License-Identifier: Apache-2.0
// Several network paths between two gateways: requests without order use them all at once, ordered
// ones keep to one, and a failed path is abandoned.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/sim/host/host.h"

namespace rocegw::sim {
namespace {

constexpr uint32_t kLength = 64 << 10;
constexpr uint32_t kDepth = 32;
constexpr Duration kTime = Milliseconds(20);
constexpr int64_t kTrunkBits = 10'000'000'000;

// Two hosts on two switches with two cables in between, one three times as long; ECMP by source
// port.
class TwoPaths {
 public:
  explicit TwoPaths(uint32_t paths, uint64_t seed = 1)
      : network_({.seed = seed}),
        hosts_{{network_, 1, Config(paths)}, {network_, 2, Config(paths)}} {
    Endpoint* const ends[] = {&hosts_[0], &hosts_[1]};
    const LinkConfig trunks[] = {{.bits_per_second = kTrunkBits, .delay = Microseconds(2)},
                                 {.bits_per_second = kTrunkBits, .delay = Microseconds(6)}};
    const LinkConfig edge{.bits_per_second = 4 * kTrunkBits, .delay = Microseconds(1)};
    wiring_ = WireDumbbell(network_, ends, 1, edge, trunks);
  }

  Network& network() { return network_; }
  Host& host(int side) { return hosts_[side]; }
  // Returns the packets sent from left to right, by cable.
  std::vector<uint64_t> Packets() const {
    return {wiring_.trunk[0]->counters().packets, wiring_.trunk[2]->counters().packets};
  }
  Faults& FaultsOf(size_t cable, bool back) {
    return wiring_.trunk[cable * 2 + (back ? 1 : 0)]->faults();
  }
  RingEnd& Connect(verbs::ServiceMode mode) {
    RingOptions options;
    options.qpn = 100;
    options.handle = 1;
    options.service_mode = mode;
    options.sq_entries = kDepth;
    RingEnd& a = hosts_[0].AddQp(options);
    options.qpn = 5000;
    Host::Connect(hosts_[0], a, hosts_[1], hosts_[1].AddQp(options),
                  {.path_mtu = 5, .channel = true});
    return a;
  }
  uint32_t PathChanges(int side) {
    const auto reply = hosts_[side].Call(0, {0, worker::SnapshotChannels{}});
    return std::accumulate(reply.channels.begin(), reply.channels.end(), 0u,
                           [](uint32_t sum, const auto& c) { return sum + c.path_changes; });
  }

 private:
  static HostConfig Config(uint32_t paths) {
    HostConfig config;
    config.channels = true;
    config.channel_paths = paths;
    config.congestion.kind = flow::CcKind::kSwift;
    config.memory_bytes = 4 << 20;
    return config;
  }
  Network network_;
  Host hosts_[2];
  Wiring wiring_;
};

// Keeps requests posted and counts the completions of each.
class Writer final : public Program {
 public:
  Writer(TwoPaths& net, RingEnd& end, uint8_t opcode) : net_(net), end_(end), opcode_(opcode) {
    net.host(0).Add(*this);
  }
  void Start() {
    for (uint32_t i = 0; i < kDepth; ++i) Post();
  }
  void Stop() { stopped_ = true; }
  void Look(TimePoint) override {
    for (const rocegw_cqe& cqe : end_.Poll()) {
      if (cqe.status != 0) {
        ADD_FAILURE() << "request " << cqe.wr_id << " fails with " << int{cqe.status};
        stopped_ = true;
        return;
      }
      ASSERT_EQ(cqe.wr_id, done_) << "completions in order, each once";
      ++done_;
      if (!stopped_) Post();
    }
  }
  uint64_t done() const { return done_; }
  uint64_t posted() const { return posted_; }

 private:
  void Post() {
    rocegw_send_wqe wqe{};
    wqe.opcode = opcode_;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.wr_id = posted_++;
    wqe.u.rdma.remote_address = Host::kBase;
    wqe.u.rdma.rkey = net_.host(1).key();
    ASSERT_TRUE(end_.PostSend(wqe, {{Host::kBase + (1 << 20), kLength, net_.host(0).key()}}));
    net_.host(0).Ring(end_);
  }
  TwoPaths& net_;
  RingEnd& end_;
  const uint8_t opcode_;
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  bool stopped_ = false;
};

struct Ran {
  double share = 0;               // share of one cable's capacity
  std::vector<uint64_t> packets;  // by cable
  size_t channels = 0;            // number of channels that the queue pair reports
};

Ran RunFor(uint8_t opcode, verbs::ServiceMode mode, uint32_t paths) {
  TwoPaths net(paths);
  Writer writer(net, net.Connect(mode), opcode);
  writer.Start();
  net.network().RunFor(kTime);
  const double bytes = static_cast<double>(writer.done()) * kLength;
  const double one = static_cast<double>(kTrunkBits) / 8 * static_cast<double>(kTime.ns) / 1e9;
  const auto qps = net.host(0).Call(0, {0, worker::SnapshotQps{}}).qps;
  const Ran ran{bytes / one, net.Packets(), 1 + qps.at(0).beside.size()};
  std::printf("%u paths, mode %u, opcode %u: %.2f of a cable, %llu and %llu packets\n", paths,
              static_cast<unsigned>(mode), opcode, ran.share,
              static_cast<unsigned long long>(ran.packets[0]),
              static_cast<unsigned long long>(ran.packets[1]));
  writer.Stop();
  net.network().RunFor(Milliseconds(5));
  EXPECT_EQ(writer.done(), writer.posted());
  return ran;
}

TEST(Paths, Unordered_UsesBoth) {
  const Ran ran = RunFor(ROCEGW_WR_RDMA_WRITE, verbs::ServiceMode::kUnordered, 8);
  EXPECT_GT(ran.share, 1.7);
  EXPECT_GT(ran.packets[0], 1000u);
  EXPECT_GT(ran.packets[1], 1000u);
  EXPECT_GT(ran.channels, 1u);
}

TEST(Paths, UnorderedReads_AreAnsweredOnBoth) {
  EXPECT_GT(RunFor(ROCEGW_WR_RDMA_READ, verbs::ServiceMode::kUnordered, 8).share, 1.7);
}

TEST(Paths, Ordered_KeepsToOne) {
  for (const verbs::ServiceMode mode :
       {verbs::ServiceMode::kByTarget, verbs::ServiceMode::kByInitiator,
        verbs::ServiceMode::kByLowerLayer}) {
    const Ran ran = RunFor(ROCEGW_WR_RDMA_WRITE, mode, 8);
    EXPECT_LT(ran.share, 1.0);
    EXPECT_TRUE(ran.packets[0] == 0 || ran.packets[1] == 0) << "the other has nothing at all";
    EXPECT_EQ(ran.channels, 1u);
  }
}

TEST(Paths, UnorderedWithOnePath_KeepsToIt) {
  const Ran ran = RunFor(ROCEGW_WR_RDMA_WRITE, verbs::ServiceMode::kUnordered, 1);
  EXPECT_LT(ran.share, 1.0);
  EXPECT_TRUE(ran.packets[0] == 0 || ran.packets[1] == 0);
}

TEST(Paths, OneThatFails_IsLeft) {
  TwoPaths net(4);
  RingEnd& end = net.Connect(verbs::ServiceMode::kUnordered);
  Writer writer(net, end, ROCEGW_WR_RDMA_WRITE);
  writer.Start();
  net.network().RunFor(Milliseconds(5));
  const uint64_t before = writer.done();
  EXPECT_GT(before, kDepth);
  for (const bool back : {false, true}) net.FaultsOf(1, back).Set({.lose = 1});
  net.network().RunFor(Seconds(2));
  EXPECT_GT(writer.done(), before + 1000) << "it goes on";
  EXPECT_GT(net.PathChanges(0), 0u);
  writer.Stop();
  net.network().RunFor(Seconds(2));
  EXPECT_EQ(writer.done(), writer.posted());
}

}  // namespace
}  // namespace rocegw::sim
