// SPDX-License-Identifier: Apache-2.0
// Congestion control of native connections, with production workers and queue pairs on simulated
// hosts and switches: many senders, one receiver, one bottleneck link.
#include <gtest/gtest.h>

#include <deque>

#include "tests/sim/host/host.h"
#include "tests/sim/rnic/rnic.h"

namespace rocegw::sim {
namespace {

using flow::CcKind;
using metrics::WorkerCounters;

constexpr int64_t kBitsPerSecond = 25'000'000'000;
constexpr uint32_t kLength = 64 << 10;

// Keeps a few WRITEs or READs posted from the given time on, either without end or a given number.
class Bulk final : public Program {
 public:
  Bulk(Host& host, RingEnd& end, Host& to, uint8_t opcode = ROCEGW_WR_RDMA_WRITE)
      : host_(host), end_(end), to_(to), opcode_(opcode) {
    host.Add(*this);
  }
  void Start(uint64_t writes = UINT64_MAX) {
    running_ = true;
    writes_ = writes;
    Post();
  }
  void Look(TimePoint now) override {
    for (const rocegw_cqe& cqe : end_.Poll()) {
      EXPECT_EQ(cqe.status, 0);
      if (++completed_ == writes_) finished_ = now;
    }
    if (running_) Post();
  }
  uint64_t completed() const { return completed_; }
  TimePoint finished() const { return finished_; }
  // Returns the number of packets sent for the first time since the last call.
  uint64_t Take() {
    const uint64_t now = host_.Count(&WorkerCounters::request_tx_packets);
    return now - std::exchange(taken_, now);
  }

 private:
  void Post() {
    bool posted = false;
    for (; posted_ < writes_ && posted_ - completed_ < 8; ++posted_, posted = true) {
      rocegw_send_wqe wqe{};
      wqe.opcode = opcode_;
      wqe.flags = ROCEGW_WQE_SIGNALED;
      wqe.wr_id = posted_;
      wqe.u.rdma.remote_address = Host::kBase;
      wqe.u.rdma.rkey = to_.key();
      EXPECT_TRUE(end_.PostSend(wqe, {{Host::kBase, kLength, host_.key()}}));
    }
    if (posted) host_.Ring(end_);
  }
  Host& host_;
  RingEnd& end_;
  Host& to_;
  const uint8_t opcode_;
  bool running_ = false;
  uint64_t writes_ = UINT64_MAX;
  TimePoint finished_ = kNever;
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  uint64_t taken_ = 0;
};

// N senders and one receiver on one switch.
class Incast {
 public:
  Incast(CcKind kind, size_t senders, uint64_t queue_bytes = 4 << 20,
         const flow::CcPolicy& policy = {}, bool marks = true, uint64_t seed = 11)
      : network_({.seed = seed}) {
    profile_.link_bits_per_second = kBitsPerSecond;
    HostConfig config;
    config.memory_bytes = kLength;
    config.congestion = {.kind = kind, .window_bytes = 256 << 10, .profile = &profile_};
    config.congestion_policy = policy;
    receiver_ = std::make_unique<Host>(network_, 1, config);
    std::vector<Endpoint*> all{receiver_.get()};
    for (size_t i = 0; i < senders; ++i) {
      hosts_.push_back(std::make_unique<Host>(network_, static_cast<uint32_t>(2 + i), config));
      all.push_back(hosts_.back().get());
    }
    LinkConfig edge{.bits_per_second = kBitsPerSecond, .delay = Microseconds(2)};
    edge.queue_bytes = queue_bytes;
    if (marks)
      edge.ecn = {.kind = EcnRule::Kind::kRed, .k_min = 20'000, .k_max = 200'000, .p_max = 0.05};
    wiring_ = WireStar(network_, all, edge);
    for (size_t i = 0; i < senders; ++i) {
      RingOptions ring;
      ring.handle = 1;
      ring.qpn = 100;
      RingEnd& from = hosts_[i]->AddQp(ring);
      ring.handle = static_cast<uint32_t>(i + 1);
      ring.qpn = static_cast<uint32_t>(1000 + i);
      RingEnd& to = receiver_->AddQp(ring);
      Host::Connect(*hosts_[i], from, *receiver_, to, {.path_mtu = 5});
      writers_.push_back(std::make_unique<Bulk>(*hosts_[i], from, *receiver_));
      readers_.push_back(
          std::make_unique<Bulk>(*receiver_, to, *hosts_[i], uint8_t{ROCEGW_WR_RDMA_READ}));
    }
  }
  // Makes the receiver read from all senders.
  void StartReading() {
    for (auto& reader : readers_) reader->Start();
  }
  void Start(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) writers_[i]->Start();
  }
  // Lets every sender write a block of that size to the receiver. Returns the payload as a share of
  // what the link could carry until the last block is complete.
  double GoodputOfBlocks(uint64_t bytes) {
    const TimePoint from = network_.now();
    for (auto& writer : writers_) writer->Start(bytes / kLength);
    TimePoint last = kNever;
    while (last == kNever && network_.now() - from < Seconds(1)) {
      Run(Microseconds(100));
      last = from;
      for (const auto& writer : writers_) last = std::max(last, writer->finished());
    }
    return PayloadShare(bytes * writers_.size(), last - from);
  }
  // Returns the payload completed since StartCounting as a share of what the link could carry.
  double Goodput() const {
    uint64_t writes = 0;
    for (const auto& writer : writers_) writes += writer->completed();
    return PayloadShare((writes - writes_) * kLength, network_.now() - since_);
  }
  static double PayloadShare(uint64_t bytes, Duration time) {
    constexpr double kOfPacket =
        4096.0 / (4096 + 28 + wire::kBthLength + wire::kIcrcLength + kEthernetOverhead);
    return static_cast<double>(bytes) * 8e9 /
           (static_cast<double>(kBitsPerSecond) * kOfPacket * static_cast<double>(time.ns));
  }
  void Run(Duration time) { network_.RunUntil(network_.now() + time); }
  void StartCounting() {
    writes_ = 0;
    for (auto& writer : writers_) {
      writer->Take();
      writes_ += writer->completed();
    }
    bytes_ = wiring_.down[0]->counters().bytes;
    since_ = network_.now();
  }
  std::vector<double> Shares() {
    std::vector<double> shares;
    for (auto& writer : writers_) shares.push_back(static_cast<double>(writer->Take()));
    return shares;
  }
  double Utilisation() const {
    return static_cast<double>(wiring_.down[0]->counters().bytes - bytes_) * 8e9 /
           (static_cast<double>(kBitsPerSecond) *
            static_cast<double>((network_.now() - since_).ns));
  }
  uint64_t Sum(metrics::Counter WorkerCounters::*counter) const {
    uint64_t sum = 0;
    for (const auto& host : hosts_) sum += host->Count(counter);
    return sum;
  }
  Host& receiver() { return *receiver_; }
  Host& sender(size_t i) { return *hosts_[i]; }
  Link& bottleneck() { return *wiring_.down[0]; }
  Link& uplink(size_t sender) { return *wiring_.up[1 + sender]; }
  TimePoint now() const { return network_.now(); }
  flow::CcProfile profile_;

 private:
  Network network_;
  std::unique_ptr<Host> receiver_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Bulk>> writers_;
  std::vector<std::unique_ptr<Bulk>> readers_;
  Wiring wiring_;
  uint64_t bytes_ = 0;
  uint64_t writes_ = 0;
  TimePoint since_;
};

double Jain(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (double x : shares) {
    sum += x;
    squares += x * x;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

struct Law {
  CcKind kind;
  size_t senders;
};

class NativeCongestion : public ::testing::TestWithParam<Law> {
 protected:
  bool dcqcn() const { return GetParam().kind == CcKind::kDcqcn; }
};

TEST_P(NativeCongestion, Senders_ShareTheLink) {
  // DCQCN gets 100 ms to converge.
  Incast incast(GetParam().kind, GetParam().senders, dcqcn() ? 4 << 20 : 32 << 20);
  incast.Start(0, GetParam().senders);
  incast.Run(dcqcn() ? Milliseconds(100) : Milliseconds(20));
  incast.StartCounting();
  incast.Run(dcqcn() ? Milliseconds(100) : Milliseconds(30));
  EXPECT_GE(Jain(incast.Shares()), 0.98);
  EXPECT_GE(incast.Utilisation(), dcqcn() ? 0.85 : 0.95);
  EXPECT_EQ(incast.bottleneck().counters().tail_drops, 0u);
  EXPECT_EQ(incast.Sum(&WorkerCounters::timeout_events), 0u);
  if (dcqcn()) {
    EXPECT_GT(incast.receiver().Count(&WorkerCounters::cnp_tx_packets), 0u);
    EXPECT_GT(incast.Sum(&WorkerCounters::cnp_rx_packets), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Laws, NativeCongestion,
                         ::testing::Values(Law{CcKind::kDcqcn, 2}, Law{CcKind::kDcqcn, 8},
                                           Law{CcKind::kDcqcn, 64}, Law{CcKind::kSwift, 2},
                                           Law{CcKind::kSwift, 8}, Law{CcKind::kSwift, 64}),
                         [](const auto& test) {
                           return std::string(flow::AlgorithmOf(test.param.kind).name) + "_" +
                                  std::to_string(test.param.senders);
                         });

// A hundred to one into a switch that can hold all initial windows.
TEST(NativeIncast, SwiftHundredToOne_NoTimeout) {
  Incast incast(CcKind::kSwift, 100, 16 << 20);
  incast.Start(0, 100);
  incast.StartCounting();
  incast.Run(Milliseconds(40));
  EXPECT_GE(incast.Utilisation(), 0.9);
  EXPECT_EQ(incast.Sum(&WorkerCounters::timeout_events), 0u);
  EXPECT_EQ(incast.Sum(&WorkerCounters::retransmit_packets), 0u);
}

// Starts with windows that together are six times what the switch can hold.
TEST(NativeIncast, DcqcnHundredToOne_NothingLostAndNoTimeout) {
  Incast incast(CcKind::kDcqcn, 100, 4 << 20);
  incast.Start(0, 100);
  incast.StartCounting();
  incast.Run(Milliseconds(40));
  EXPECT_GE(incast.Utilisation(), 0.9);
  // A WRITE at a hundredth of the link's rate takes 2 ms; incomplete ones do not count.
  std::printf("goodput %.3f\n", incast.Goodput());
  EXPECT_GE(incast.Goodput(), 0.9);
  EXPECT_EQ(incast.Sum(&WorkerCounters::timeout_events), 0u);
  EXPECT_EQ(incast.bottleneck().counters().tail_drops, 0u);
  // An acknowledgement that is later than a probe's timeout makes its packet count as lost.
  EXPECT_LE(incast.Sum(&WorkerCounters::retransmit_packets), 100u);
}

// READ data meets congestion on its way to the reader, so the responders must slow down.
TEST(NativeIncast, DcqcnReads_SlowTheResponders) {
  Incast incast(CcKind::kDcqcn, 8);
  incast.StartReading();
  incast.Run(Milliseconds(100));
  incast.StartCounting();
  incast.Run(Milliseconds(50));
  EXPECT_GE(incast.Utilisation(), 0.85);
  EXPECT_EQ(incast.bottleneck().counters().tail_drops, 0u);
  EXPECT_GT(incast.receiver().Count(&WorkerCounters::cnp_tx_packets), 0u);
  EXPECT_EQ(incast.receiver().Count(&WorkerCounters::cnp_rx_packets), 0u);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_GT(incast.sender(i).Count(&WorkerCounters::cnp_rx_packets), 0u) << i;
}

// Finite blocks: the last ones must not stay slow after the others end.
TEST(NativeIncast, DcqcnHundredBlocks_UseTheLinkUntilTheLastIsThere) {
  for (const uint64_t seed : {11, 12, 13, 14, 15}) {
    Incast incast(CcKind::kDcqcn, 100, 4 << 20, {}, true, seed);
    const double goodput = incast.GoodputOfBlocks(1 << 20);
    std::printf("blocks of 1 MiB: goodput %.3f\n", goodput);
    EXPECT_GE(goodput, 0.9) << seed;
    EXPECT_EQ(incast.Sum(&WorkerCounters::timeout_events), 0u);
    EXPECT_EQ(incast.bottleneck().counters().tail_drops, 0u);
  }
}

// Control experiment: without congestion control, the same network fills its queue, so the tests
// above can fail.
TEST(NativeIncast, StaticWindows_FillTheQueue) {
  Incast incast(CcKind::kStatic, 8, 32 << 20);
  incast.Start(0, 8);
  incast.Run(Milliseconds(5));
  EXPECT_GE(incast.bottleneck().counters().queue_most, 7u * (256 << 10));
}

TEST(NativeJoin, Swift_HasItsShareWithinFiftyRoundTrips) {
  Incast incast(CcKind::kSwift, 4);
  incast.Start(0, 3);
  incast.Run(Milliseconds(20));
  incast.Start(3, 4);
  // With the queue that Swift keeps, a round trip is 120 us.
  incast.Run(Microseconds(120 * 50));
  incast.StartCounting();
  incast.Run(Milliseconds(6));
  const std::vector<double> shares = incast.Shares();
  EXPECT_GE(shares[3], 0.75 * (shares[0] + shares[1] + shares[2]) / 3);
  EXPECT_LE(shares[3], 1.33 * (shares[0] + shares[1] + shares[2]) / 3);
}

TEST(NativeJoin, Dcqcn_HasItsShareAfterHundredMilliseconds) {
  for (const size_t others : {1, 3, 7}) {
    Incast incast(CcKind::kDcqcn, others + 1);
    incast.Start(0, others);
    incast.Run(Milliseconds(200));
    incast.Start(others, others + 1);
    incast.Run(Milliseconds(100));
    incast.StartCounting();
    incast.Run(Milliseconds(50));
    const std::vector<double> shares = incast.Shares();
    double mean = 0;
    for (size_t i = 0; i < others; ++i) mean += shares[i] / static_cast<double>(others);
    std::printf("joined %zu: %.2f of their mean\n", others, shares[others] / mean);
    EXPECT_GE(shares[others], 0.75 * mean) << others;
    EXPECT_LE(shares[others], 1.33 * mean) << others;
  }
}

// All flows start without congestion control, on switches that drop and never mark. The loss makes
// the workers switch to Swift; connections continue, and no further packet is lost.
TEST(NativePolicy, UnmarkedLoss_SwitchesRunningConnections) {
  flow::CcPolicy policy;
  policy.Add({flow::CcSign::kCnps, 1, CcKind::kDcqcn});
  policy.Add({flow::CcSign::kUnmarkedLoss, 1, CcKind::kSwift});
  policy.Add({flow::CcSign::kAlways, 0, CcKind::kStatic});
  Incast incast(CcKind::kStatic, 8, 1 << 20, policy, false);
  incast.Start(0, 8);
  incast.Run(Milliseconds(20));
  EXPECT_GT(incast.bottleneck().counters().tail_drops, 0u);
  EXPECT_EQ(incast.sender(0).worker(0).congestion(), CcKind::kStatic) << "not yet";
  incast.Run(Milliseconds(80));
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(incast.sender(i).worker(0).congestion(), CcKind::kSwift) << i;
    EXPECT_EQ(incast.sender(i).Count(&WorkerCounters::congestion_switch_events), 1u) << i;
  }
  EXPECT_EQ(incast.receiver().worker(0).congestion(), CcKind::kStatic) << "it loses nothing";
  const uint64_t drops = incast.bottleneck().counters().tail_drops;
  incast.StartCounting();
  incast.Run(Milliseconds(50));
  EXPECT_EQ(incast.bottleneck().counters().tail_drops, drops);
  EXPECT_GE(Jain(incast.Shares()), 0.98);
  EXPECT_GE(incast.Utilisation(), 0.95);
}

// An RNIC and a gateway send to a gateway over one link: neither displaces the other. The RNIC
// model's reaction point shares no code with the gateway's; both have the presets of RNICs.
TEST(NativeBesideRnic, ShareALinkWithinFiveQuarters) {
  Network network({.seed = 5});
  flow::CcProfile profile;
  profile.link_bits_per_second = kBitsPerSecond;
  HostConfig config;
  config.memory_bytes = kLength;
  config.congestion = {.kind = CcKind::kDcqcn, .window_bytes = 256 << 10, .profile = &profile};
  Host receiver(network, 1, config);
  Host gateway(network, 2, config);
  Rnic rnic(network, 3, {.memory_bytes = kLength, .window_packets = 64});
  LinkConfig edge{.bits_per_second = kBitsPerSecond, .delay = Microseconds(2)};
  edge.ecn = {.kind = EcnRule::Kind::kRed, .k_min = 20'000, .k_max = 200'000, .p_max = 0.05};
  Endpoint* const all[] = {&receiver, &gateway, &rnic};
  WireStar(network, all, edge);
  RingEnd& from = gateway.AddQp({.qpn = 100});
  RingEnd& to = receiver.AddQp({.qpn = 1000});
  RingEnd& other = receiver.AddQp({.qpn = 1001, .handle = 2});
  Host::Connect(gateway, from, receiver, to, {.path_mtu = 5});
  receiver.ConnectTo(other, rnic.gid(), Qpn{55}, Psn(7), Psn(9), {.path_mtu = 5});
  const size_t qp = rnic.Connect({.own_qpn = 55,
                                  .peer = receiver.gid(),
                                  .peer_qpn = Qpn{1001},
                                  .mtu = 4096,
                                  .send_psn = Psn(9),
                                  .receive_psn = Psn(7)});
  Bulk writer(gateway, from, receiver);
  uint64_t next = 0;
  const auto post = [&] {
    rnic.Post(qp, {.id = next++,
                   .operation = RnicOperation::kWrite,
                   .length = kLength,
                   .remote_address = Host::kBase,
                   .rkey = receiver.key()});
  };
  rnic.OnComplete([&](size_t, const RnicCompletion& completion) {
    EXPECT_TRUE(completion.ok);
    post();
  });
  writer.Start();
  for (int i = 0; i < 8; ++i) post();
  network.RunUntil(network.now() + Milliseconds(300));
  writer.Take();
  const uint64_t before = rnic.counters().data_bytes;
  network.RunUntil(network.now() + Milliseconds(700));
  const double ours = static_cast<double>(writer.Take()) * 4096;
  const double theirs = static_cast<double>(rnic.counters().data_bytes - before);
  std::printf("gateway %.2f Gbit/s, RNIC %.2f Gbit/s\n", ours * 8 / 0.7e9, theirs * 8 / 0.7e9);
  EXPECT_LE(ours / theirs, 1.25);
  EXPECT_LE(theirs / ours, 1.25);
  EXPECT_GE((ours + theirs) * 8 / 0.7, 0.85 * kBitsPerSecond);
  EXPECT_GT(rnic.counters().cnps_received, 0u);
  EXPECT_GT(gateway.Count(&WorkerCounters::cnp_rx_packets), 0u);
}

// Paced packets leave one by one or per slot of the timer wheel, not a window at a time.
TEST(NativePacing, PacketsLeaveApart_AndTheQueueStaysAtTheMarks) {
  constexpr size_t kSenders = 8;
  constexpr Duration kSlot = Microseconds(16);
  Incast incast(CcKind::kDcqcn, kSenders);
  // Without a burst allowance, a sender that is late for other reasons than the wheel does not
  // catch up.
  incast.profile_.burst = kSlot;
  incast.Start(0, kSenders);
  incast.Run(Milliseconds(100));
  // Departure times of each sender's newest packets, and the largest number within a slot.
  std::deque<TimePoint> left[kSenders];
  size_t most = 0;
  for (size_t i = 0; i < kSenders; ++i) {
    incast.uplink(i).Watch([&, i](LinkEvent event, const Packet&) {
      if (event != LinkEvent::kLeaves) return;
      left[i].push_back(incast.now());
      while (left[i].front() + kSlot < incast.now()) left[i].pop_front();
      most = std::max(most, left[i].size());
    });
  }
  uint64_t queue = 0;
  for (int i = 0; i < 5000; ++i) {
    incast.Run(Microseconds(10));
    queue = std::max(queue, incast.bottleneck().queued_bytes(incast.now()));
  }
  std::printf("%zu packets within a slot, queue of %llu bytes\n", most,
              static_cast<unsigned long long>(queue));
  // A sender's link carries twelve packets in that time, its share is 1.5; it may be late by a slot
  // and the burst.
  EXPECT_LE(most, 6u);
  // Queue at which all packets are marked, plus one packet per sender. Full windows would be 2 MiB.
  EXPECT_LE(queue, 200'000u + kSenders * 4200);
}

}  // namespace
}  // namespace rocegw::sim
