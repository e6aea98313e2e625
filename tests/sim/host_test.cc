// SPDX-License-Identifier: Apache-2.0
// Virtual hosts: production workers send over simulated links, in virtual time.
#include "tests/sim/host/host.h"

#include <gtest/gtest.h>

namespace rocegw::sim {
namespace {

// Program whose host posts SENDs; the peer's program posts receives for them.
class Sender final : public Program {
 public:
  Sender(Host& host, RingEnd& end, uint32_t length, uint64_t messages)
      : host_(host), end_(end), length_(length), messages_(messages) {
    host.Add(*this);
  }
  void Look(TimePoint) override {
    for (const rocegw_cqe& cqe : end_.Poll()) {
      EXPECT_EQ(cqe.status, 0);
      EXPECT_EQ(cqe.wr_id, completed++);
    }
    bool posted = false;
    while (next_ < messages_ && next_ - completed < 16) {
      rocegw_send_wqe wqe{};
      wqe.opcode = ROCEGW_WR_SEND;
      wqe.flags = ROCEGW_WQE_SIGNALED;
      wqe.wr_id = next_++;
      EXPECT_TRUE(end_.PostSend(wqe, {{Host::kBase, length_, host_.key()}}));
      posted = true;
    }
    if (posted) host_.Ring(end_);
  }
  uint64_t completed = 0;

 private:
  Host& host_;
  RingEnd& end_;
  const uint32_t length_;
  const uint64_t messages_;
  uint64_t next_ = 0;
};

class Receiver final : public Program {
 public:
  Receiver(Host& host, RingEnd& end, uint32_t length) : host_(host), end_(end), length_(length) {
    host.Add(*this);
    for (int i = 0; i < 32; ++i) Post();
  }
  void Look(TimePoint now) override {
    for (const rocegw_cqe& cqe : end_.Poll()) {
      EXPECT_EQ(cqe.status, 0);
      EXPECT_EQ(cqe.byte_length, length_);
      bytes += cqe.byte_length;
      last = now;
      Post();
    }
  }
  uint64_t bytes = 0;
  TimePoint last;

 private:
  void Post() { EXPECT_TRUE(end_.PostReceive(0, {{Host::kBase, length_, host_.key()}})); }
  Host& host_;
  RingEnd& end_;
  const uint32_t length_;
};

struct Transfer {
  uint64_t trace = 0;
  uint64_t bytes = 0;
  Duration took;
};

Transfer SendMegabytes(uint64_t seed, double lose, size_t workers) {
  Network network({.seed = seed});
  HostConfig config;
  config.workers = workers;
  config.wrong_queue = workers > 1 ? 0.3 : 0;
  Host a(network, 1, config), b(network, 2, config);
  const Wiring wiring = WirePair(network, a, b, {.delay = Microseconds(2)});
  wiring.up[0]->faults().Set({.lose = lose});
  RingEnd& qa = a.AddQp({.qpn = (3u << 18) + 17});
  RingEnd& qb = b.AddQp({.qpn = (2u << 18) + 23});
  Host::Connect(a, qa, b, qb, {.path_mtu = 5});
  constexpr uint64_t kMessages = 200;
  Sender sender(a, qa, 40000, kMessages);
  Receiver receiver(b, qb, 40000);
  const TimePoint from = network.now();
  while (sender.completed < kMessages && network.RunOne(from + Seconds(10))) {
  }
  EXPECT_EQ(sender.completed, kMessages);
  EXPECT_EQ(receiver.bytes, kMessages * 40000);
  EXPECT_TRUE(a.notices.empty());
  EXPECT_EQ(b.Count(&metrics::WorkerCounters::handoff_rx_packets) > 0, workers > 1);
  EXPECT_EQ(a.Count(&metrics::WorkerCounters::retransmit_packets) > 0, lose > 0);
  return {network.trace_hash(), receiver.bytes, receiver.last - from};
}

TEST(Host, SendsOnAQuietLink_FillIt) {
  const Transfer run = SendMegabytes(1, 0, 1);
  const double gigabits = static_cast<double>(run.bytes) * 8 / static_cast<double>(run.took.ns);
  // 4096 of the 4178 bytes on the cable are payload.
  EXPECT_GT(gigabits, 90);
  EXPECT_LT(gigabits, 98.1);
}

TEST(Host, SendsUnderLoss_AllArrive) { SendMegabytes(1, 0.02, 1); }

TEST(Host, PacketsInTheWrongQueue_AreHandedOver) { SendMegabytes(1, 0.01, 3); }

TEST(Host, SameSeed_SameRun) {
  for (const size_t workers : {1, 2}) {
    const Transfer first = SendMegabytes(5, 0.01, workers);
    const Transfer second = SendMegabytes(5, 0.01, workers);
    const Transfer other = SendMegabytes(6, 0.01, workers);
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.took.ns, second.took.ns);
    EXPECT_NE(first.trace, other.trace);
  }
}

}  // namespace
}  // namespace rocegw::sim
