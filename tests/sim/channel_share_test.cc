// SPDX-License-Identifier: Apache-2.0
// Many queue pairs on one channel. A queue pair that stalls, fails or waits for a slow reader takes
// almost nothing from the others, in virtual time. Queue pairs after the first need no packet for
// set-up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <vector>

#include "tests/sim/two_gateways.h"

namespace rocegw::sim {
namespace {

constexpr size_t kOthers = 15;
constexpr uint32_t kDepth = 4;

// Keeps requests of one size posted on queue pairs of side 0, and records how long each took.
class Load final : public Program {
 public:
  Load(TwoGateways& net, uint32_t length) : net_(net), length_(length) { net.hosts[0].Add(*this); }
  void Add(RingEnd& end) { ends_.push_back({&end, {}}); }
  void Start() {
    for (One& one : ends_)
      for (uint32_t i = 0; i < kDepth; ++i) Post(one);
  }
  void Look(TimePoint now) override {
    for (One& one : ends_) {
      for (const rocegw_cqe& cqe : one.end->Poll()) {
        EXPECT_EQ(cqe.status, 0);
        took_.push_back((now - one.posted.front()).ns);
        one.posted.pop_front();
        Post(one);
      }
    }
  }
  void Forget() { took_.clear(); }
  uint64_t bytes() const { return took_.size() * length_; }
  double Microseconds99() {
    std::sort(took_.begin(), took_.end());
    return took_.empty() ? 0 : static_cast<double>(took_[took_.size() * 99 / 100]) / 1000;
  }

 private:
  struct One {
    RingEnd* end;
    std::deque<TimePoint> posted;
  };
  void Post(One& one) {
    one.posted.push_back(net_.network.now());
    net_.Post(0, *one.end, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = length_, .remote = 4 << 20});
  }
  TwoGateways& net_;
  const uint32_t length_;
  std::vector<One> ends_;
  std::vector<int64_t> took_;
};

enum class Trouble : uint8_t {
  kNone,
  kNoReceives,  // SENDs to a queue pair that never has a receive
  kSlowReader,  // SENDs to a queue pair that rarely posts a receive
  kRefused,     // its requests are refused repeatedly, each time with a new queue pair
  kAbsent,      // WRITEs to a destroyed queue pair
};

// Program of the sixteenth queue pair.
class Troubled final : public Program {
 public:
  // A slow reader's messages are as long as the others', so that the few that it receives carry
  // little.
  Troubled(TwoGateways& net, Trouble trouble, uint32_t length)
      : net_(net),
        trouble_(trouble),
        length_(trouble == Trouble::kSlowReader ? length : kMaxMessage) {
    if (trouble == Trouble::kNone) return;
    net.hosts[0].Add(*this);
    Connect();
  }
  void Start() {
    if (trouble_ != Trouble::kNone) Post();
  }
  void Look(TimePoint now) override {
    for (const rocegw_cqe& cqe : a_->Poll()) {
      ++completions;
      failures += cqe.status != 0 ? 1 : 0;
    }
    if (trouble_ == Trouble::kSlowReader && now >= next_receive_) {
      next_receive_ = now + Microseconds(200);
      (void)b_->PostReceive(0, {{Host::kBase, length_, net_.hosts[1].key()}});
      net_.hosts[1].Ring(*b_);
      Post();
    }
  }
  // Replaces a failed queue pair by a new one.
  void Replace() {
    if (trouble_ != Trouble::kRefused || failures == 0) return;
    failures = 0;
    Connect();
    Post();
  }
  uint64_t completions = 0;
  uint64_t failures = 0;

 private:
  static constexpr uint32_t kMaxMessage = 64 << 10;
  void Connect() {
    const auto pair = net_.Connect({.path_mtu = 5, .min_rnr_timer = 1, .channel = true});
    a_ = &pair.a;
    b_ = &pair.b;
    if (trouble_ == Trouble::kAbsent) net_.hosts[1].Remove(*b_);
  }
  void Post() {
    rocegw_send_wqe wqe{};
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = Host::kBase;
    wqe.u.rdma.rkey = net_.hosts[1].key() + (trouble_ == Trouble::kRefused ? 0x100 : 0);
    const bool send = trouble_ == Trouble::kNoReceives || trouble_ == Trouble::kSlowReader;
    wqe.opcode = send ? ROCEGW_WR_SEND : ROCEGW_WR_RDMA_WRITE;
    while (a_->PostSend(wqe, {{Host::kBase, length_, net_.hosts[0].key()}})) {
    }
    net_.hosts[0].Ring(*a_);
  }
  TwoGateways& net_;
  const Trouble trouble_;
  const uint32_t length_;
  RingEnd* a_ = nullptr;
  RingEnd* b_ = nullptr;
  TimePoint next_receive_;
};

struct Outcome {
  double gigabits = 0;
  double p99 = 0;  // microseconds
  uint64_t channels = 0;
  uint64_t refused = 0;  // number of refusals
  uint64_t completions = 0;
};

Outcome Measure(Trouble trouble, uint32_t length) {
  TwoGateways net({.host = {.memory_bytes = 8 << 20}});
  Load load(net, length);
  for (size_t i = 0; i < kOthers; ++i) load.Add(net.Connect({.path_mtu = 5, .channel = true}).a);
  Troubled troubled(net, trouble, length);
  load.Start();
  troubled.Start();
  net.network.RunFor(Milliseconds(2));
  load.Forget();
  constexpr int kSlices = 80;
  for (int i = 0; i < kSlices; ++i) {
    net.network.RunFor(Microseconds(250));
    troubled.Replace();
  }
  const double ns = kSlices * 250e3;
  return {static_cast<double>(load.bytes()) * 8 / ns, load.Microseconds99(),
          net.Count(0, &metrics::WorkerCounters::channel_open_events),
          net.Count(0, &metrics::WorkerCounters::rnr_rx_packets), troubled.completions};
}

struct StalledCase {
  const char* name;
  Trouble trouble;
  uint32_t length;
};
void PrintTo(const StalledCase& c, std::ostream* out) { *out << c.name; }

class StalledQueuePair : public ::testing::TestWithParam<StalledCase> {};

TEST_P(StalledQueuePair, LeavesTheOthersAlone) {
  const StalledCase& c = GetParam();
  const Outcome without = Measure(Trouble::kNone, c.length);
  const Outcome with = Measure(c.trouble, c.length);
  std::printf(
      "%s: %.2f of %.2f Gbit/s (%+.2f %%), p99 %.2f of %.2f us (%+.2f %%), refused %llu "
      "times, %llu completions\n",
      c.name, with.gigabits, without.gigabits, (with.gigabits / without.gigabits - 1) * 100,
      with.p99, without.p99, (with.p99 / without.p99 - 1) * 100,
      static_cast<unsigned long long>(with.refused),
      static_cast<unsigned long long>(with.completions));
  EXPECT_EQ(with.channels, 1u);
  // Checks that the queue pair behaved as its name says.
  if (c.trouble != Trouble::kRefused) {
    EXPECT_GT(with.refused, 10u);
  }
  if (c.trouble == Trouble::kSlowReader || c.trouble == Trouble::kRefused) {
    EXPECT_GT(with.completions, 50u);
  } else {
    EXPECT_EQ(with.completions, 0u);
  }
  EXPECT_GT(without.gigabits, 10);
  EXPECT_GE(with.gigabits, without.gigabits * 0.98);
  EXPECT_LE(with.p99, without.p99 * 1.10);
}

INSTANTIATE_TEST_SUITE_P(
    All, StalledQueuePair,
    ::testing::Values(StalledCase{"no_receives", Trouble::kNoReceives, 16 << 10},
                      StalledCase{"no_receives_small", Trouble::kNoReceives, 512},
                      StalledCase{"slow_reader", Trouble::kSlowReader, 16 << 10},
                      StalledCase{"slow_reader_small", Trouble::kSlowReader, 512},
                      StalledCase{"refused", Trouble::kRefused, 16 << 10},
                      StalledCase{"absent", Trouble::kAbsent, 16 << 10},
                      StalledCase{"absent_small", Trouble::kAbsent, 512}),
    [](const auto& c) { return c.param.name; });

// The first queue pair between two gateways opens a channel, in one round trip. Later ones use it,
// and their set-up sends nothing.
TEST(SetUp, SecondAndLaterQueuePairs_SendNoPacket) {
  TwoGateways net;
  uint64_t controls = 0, packets = 0;
  for (Link* link : net.wiring.up) {
    link->Watch([&](LinkEvent event, const Packet& packet) {
      if (event != LinkEvent::kLeaves) return;
      ++packets;
      controls += packet.opcode() == static_cast<uint8_t>(wire::Opcode::kChannelControl) ? 1 : 0;
    });
  }
  const auto use = [&](const TwoGateways::Pair& pair) {
    for (const auto& [side, end] : {std::pair<int, RingEnd*>{0, &pair.a}, {1, &pair.b}}) {
      net.Post(side, *end, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 64, .remote = 4 << 20});
      for (const rocegw_cqe& cqe : net.Await(*end, 1)) EXPECT_EQ(cqe.status, 0);
    }
    // Wait until received frames are acknowledged.
    net.network.RunFor(Milliseconds(1));
  };
  const auto first = net.Connect();
  net.network.RunFor(Milliseconds(1));
  use(first);
  const uint64_t opened = controls;
  EXPECT_GE(opened, 2u);
  EXPECT_LE(opened, 4u);
  for (int i = 0; i < 100; ++i) {
    const uint64_t before = packets;
    const auto next = net.Connect();
    net.network.RunFor(Milliseconds(1));
    EXPECT_EQ(packets, before);
    use(next);
  }
  EXPECT_EQ(controls, opened);
  for (int side = 0; side < 2; ++side)
    EXPECT_EQ(net.Count(side, &metrics::WorkerCounters::channel_open_events), 1u);
}

}  // namespace
}  // namespace rocegw::sim
