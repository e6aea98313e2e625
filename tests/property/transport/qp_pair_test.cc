// SPDX-License-Identifier: Apache-2.0
// Two RC queue pairs, compared with a byte-array model: whatever the network drops, duplicates,
// reorders or corrupts, every work request completes exactly once and in order, and memory ends as
// if the requests had executed one after the other.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>

#include "tests/support/qp/qp_host.h"

namespace rocegw::testing {
namespace {

struct Trouble {
  const char* name;
  double drop;
  double duplicate;
  double reorder;
  double corrupt;
};

constexpr uint64_t kSource = 0;          // constant random bytes
constexpr uint64_t kTarget = 256 << 10;  // written by the peer
constexpr uint64_t kAtomics = 512 << 10;
constexpr uint64_t kReadInto = 640 << 10;
constexpr uint64_t kReceives = 896 << 10;
constexpr uint32_t kReceiveSize = 8 << 10;

class Side {
 public:
  Side(QpHost& host, std::mt19937_64& rng) : host_(host), rng_(rng) {}

  uint64_t Pick(uint64_t n) { return rng_() % n; }

  // Posts one random request and applies it to the models of both sides.
  void PostRandom(Side& peer, bool after_read) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = posted_;
    wqe.flags = Pick(3) != 0 ? ROCEGW_WQE_SIGNALED : 0;
    if (after_read || Pick(8) == 0) wqe.flags |= ROCEGW_WQE_FENCE;
    uint64_t from = kSource + Pick(128 << 10);
    const uint64_t sizes[] = {0,    1,    3,           Pick(256),       256,
                              1024, 1025, Pick(20000), 4096 * Pick(10), 200000};
    auto length = static_cast<uint32_t>(sizes[Pick(10)]);
    wqe.u.rdma.rkey = peer.host_.key();
    switch (Pick(7)) {
      case 0:
      case 1: {
        if (length > 100000) length = 100000;
        const uint64_t to = kTarget + Pick((256 << 10) - length);
        wqe.opcode = Pick(2) != 0 ? ROCEGW_WR_RDMA_WRITE : ROCEGW_WR_RDMA_WRITE_WITH_IMM;
        wqe.imm_or_rkey = static_cast<uint32_t>(rng_());
        wqe.u.rdma.remote_address = peer.host_.Address(to);
        std::memcpy(&peer.model[to], &model[from], length);
        if (wqe.opcode == ROCEGW_WR_RDMA_WRITE_WITH_IMM) peer.Expect(wqe, length, from, *this);
        host_.PostSend(wqe, Split(from, length));
        break;
      }
      case 2: {
        length %= kReceiveSize + 1;
        wqe.opcode = ROCEGW_WR_SEND_WITH_IMM;
        wqe.imm_or_rkey = static_cast<uint32_t>(rng_());
        peer.Expect(wqe, length, from, *this);
        if (length <= 64 && Pick(2) != 0) {
          const std::vector<uint8_t> bytes(&model[from], &model[from] + length);
          wqe.flags |= ROCEGW_WQE_INLINE;
          host_.PostSend(wqe, {{from, length}}, &bytes);
        } else {
          host_.PostSend(wqe, Split(from, length));
        }
        break;
      }
      case 3:
      case 4: {
        if (length > 100000) length = 100000;
        const uint64_t what = Pick(2) != 0 ? kTarget : kSource;
        const uint64_t at = what + Pick((256 << 10) - length);
        const uint64_t into = kReadInto + Pick((256 << 10) - length);
        wqe.opcode = ROCEGW_WR_RDMA_READ;
        wqe.u.rdma.remote_address = peer.host_.Address(at);
        std::memcpy(&model[into], &peer.model[at], length);
        host_.PostSend(wqe, Split(into, length));
        read_since_fence = true;
        break;
      }
      case 5: {
        if (Pick(2) != 0) {
          wqe.opcode = ROCEGW_WR_FLUSH;
          wqe.u.rdma.remote_address = peer.host_.Address(kTarget);
          wqe.u.rdma.compare_add = length;
          wqe.u.rdma.swap = wire::kFlushGlobal;
          host_.PostSend(wqe, {});
          break;
        }
        const uint64_t at = kAtomics + 8 * Pick(16);
        wqe.opcode = ROCEGW_WR_ATOMIC_WRITE;
        wqe.u.rdma.remote_address = peer.host_.Address(at);
        std::memcpy(&peer.model[at], &model[from], 8);
        host_.PostSend(wqe, {{from, 8}});
        break;
      }
      default: {
        const uint64_t at = kAtomics + 8 * Pick(16);
        const uint64_t into = kReadInto + 8 * Pick(1000);
        const bool swap = Pick(2) != 0;
        uint64_t value;
        std::memcpy(&value, &peer.model[at], 8);
        wqe.opcode = swap ? ROCEGW_WR_ATOMIC_CMP_AND_SWP : ROCEGW_WR_ATOMIC_FETCH_AND_ADD;
        wqe.u.rdma.remote_address = peer.host_.Address(at);
        wqe.u.rdma.compare_add = swap && Pick(2) != 0 ? value : rng_();
        wqe.u.rdma.swap = rng_();
        std::memcpy(&model[into], &value, 8);
        uint64_t next = value + wqe.u.rdma.compare_add;
        if (swap) next = value == wqe.u.rdma.compare_add ? wqe.u.rdma.swap : value;
        std::memcpy(&peer.model[at], &next, 8);
        host_.PostSend(wqe, {{into, 8}});
        read_since_fence = true;
      }
    }
    if ((wqe.flags & ROCEGW_WQE_FENCE) != 0 && wqe.opcode != ROCEGW_WR_RDMA_READ) {
      read_since_fence = false;
    }
    if ((wqe.flags & ROCEGW_WQE_SIGNALED) != 0) expected_sends_.push_back(wqe.wr_id);
    ++posted_;
    in_ring_ = posted_;
  }

  void PostReceives() {
    while (receives_posted_ - receives_done_ < 16) {
      const uint64_t at = kReceives + (receives_posted_ % 8) * kReceiveSize;
      host_.PostReceive(receives_posted_, {{at, 100}, {at + 100, kReceiveSize - 100}});
      ++receives_posted_;
    }
  }

  void Check() {
    for (const rocegw_cqe& cqe : host_.Poll()) {
      ASSERT_EQ(cqe.status, 0) << "opcode " << int{cqe.opcode};
      if ((cqe.flags & ROCEGW_CQE_RECEIVE) == 0) {
        ASSERT_FALSE(expected_sends_.empty());
        ASSERT_EQ(cqe.wr_id, expected_sends_.front());
        expected_sends_.pop_front();
        continue;
      }
      ASSERT_FALSE(expected_receives_.empty());
      const Receive want = expected_receives_.front();
      expected_receives_.pop_front();
      ASSERT_EQ(cqe.wr_id, receives_done_);
      ASSERT_EQ(cqe.imm_or_rkey, want.immediate);
      ASSERT_EQ(cqe.byte_length, want.length);
      if (!want.bytes.empty()) {
        const uint64_t at = kReceives + (receives_done_ % 8) * kReceiveSize;
        ASSERT_EQ(std::memcmp(&host_.memory()[at], want.bytes.data(), want.bytes.size()), 0);
      }
      ++receives_done_;
    }
  }

  bool Done() const { return expected_sends_.empty() && expected_receives_.empty(); }
  uint32_t posted() const { return static_cast<uint32_t>(posted_); }

  std::vector<uint8_t> model;
  bool read_since_fence = false;

 private:
  struct Receive {
    uint32_t immediate;
    uint32_t length;
    std::vector<uint8_t> bytes;
  };
  void Expect(const rocegw_send_wqe& wqe, uint32_t length, uint64_t from, const Side& sender) {
    Receive receive{wqe.imm_or_rkey, length, {}};
    if (wqe.opcode == ROCEGW_WR_SEND_WITH_IMM) {
      receive.bytes.assign(&sender.model[from], &sender.model[from] + length);
    }
    expected_receives_.push_back(std::move(receive));
  }
  std::vector<QpHost::Sge> Split(uint64_t from, uint32_t length) {
    if (length < 10 || Pick(2) != 0) return {{from, length}};
    const auto first = static_cast<uint32_t>(1 + Pick(length - 1));
    return {{from, first}, {from + first, 0}, {from + first, length - first}};
  }

  QpHost& host_;
  std::mt19937_64& rng_;
  uint64_t posted_ = 0;
  uint64_t in_ring_ = 0;
  std::deque<uint64_t> expected_sends_;
  std::deque<Receive> expected_receives_;
  uint64_t receives_posted_ = 0;
  uint64_t receives_done_ = 0;
};

class QpPair : public ::testing::TestWithParam<std::tuple<Trouble, int, int>> {};

TEST_P(QpPair, RandomRequests_UnderTrouble_EqualTheModel) {
  const auto& [trouble, mtu, seed] = GetParam();
  SCOPED_TRACE(::testing::Message() << trouble.name << " mtu code " << mtu << " seed " << seed);
  std::mt19937_64 rng(static_cast<uint64_t>(seed) * 1000 + static_cast<uint64_t>(mtu));
  QpHost::Options options_a;
  options_a.payload_stride = 64;
  options_a.placement = true;
  QpHost::Options options_b = options_a;
  options_b.qpn = 0x40012;
  options_b.gid = wire::Gid::FromV4(0xC0000202);
  options_b.rq_payload_stride = 0;
  QpHost a(options_a);
  QpHost b(options_b);
  // Side b starts just below the wrap of the PSN space.
  QpHost::Connect(a, b, static_cast<uint8_t>(mtu), 0xFFFFF0,
                  static_cast<uint32_t>(rng()) & 0xFFFFFF);

  Side side_a(a, rng);
  Side side_b(b, rng);
  for (QpHost* host : {&a, &b}) {
    for (size_t i = 0; i < (256 << 10); i += 8) {
      const uint64_t word = rng();
      std::memcpy(&host->memory()[i], &word, 8);
    }
  }
  side_a.model = a.memory();
  side_b.model = b.memory();

  const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(rng) < p; };
  const auto carry = [&](QpHost& from, QpHost& to, TimePoint now) {
    std::deque<WirePacket> batch;
    batch.swap(from.sent);
    while (!batch.empty()) {
      if (batch.size() > 1 && chance(trouble.reorder)) std::swap(batch[0], batch[1]);
      WirePacket packet = std::move(batch.front());
      batch.pop_front();
      if (chance(trouble.drop)) continue;
      if (chance(trouble.corrupt)) {
        packet.bytes[rng() % packet.bytes.size()] ^= static_cast<uint8_t>(1 + rng() % 255);
      }
      to.Deliver(packet, now);
      if (chance(trouble.duplicate)) to.Deliver(packet, now);
    }
  };

  constexpr uint32_t kRequests = 300;
  TimePoint now{1000000};
  int idle_steps = 0;
  for (int step = 0; step < 200000; ++step) {
    now = now + Microseconds(50);
    for (auto [side, peer] : {std::pair(&side_a, &side_b), std::pair(&side_b, &side_a)}) {
      QpHost& host = side == &side_a ? a : b;
      if (chance(0.7)) side->PostReceives();
      const bool room =
          host.rings().control().sq_producer - host.qp().context().sq().released() < 60;
      if (side->posted() < kRequests && room && chance(0.5)) {
        side->PostRandom(*peer, side->read_since_fence);
      }
    }
    a.Pump(now);
    b.Pump(now);
    a.Settle();
    b.Settle();
    carry(a, b, now);
    carry(b, a, now);
    a.Settle();
    b.Settle();
    for (QpHost* host : {&a, &b}) {
      if (host->qp().deadline() <= now) host->Deadline(now);
    }
    side_a.Check();
    side_b.Check();
    if (HasFatalFailure()) break;
    const bool done = side_a.posted() == kRequests && side_b.posted() == kRequests &&
                      side_a.Done() && side_b.Done() && a.qp().outstanding() == 0 &&
                      b.qp().outstanding() == 0;
    if (done && ++idle_steps > 3) break;
  }
  ASSERT_EQ(side_a.posted(), kRequests);
  EXPECT_TRUE(side_a.Done());
  EXPECT_TRUE(side_b.Done());
  EXPECT_EQ(a.qp().outstanding(), 0u);
  EXPECT_EQ(b.qp().outstanding(), 0u);
  // Receive buffers are reused and checked as they complete; everything else must equal the model.
  EXPECT_EQ(std::memcmp(a.memory().data(), side_a.model.data(), kReceives), 0);
  EXPECT_EQ(std::memcmp(b.memory().data(), side_b.model.data(), kReceives), 0);
  EXPECT_TRUE(a.faults.empty());
  if (trouble.drop > 0) {
    EXPECT_GT(a.counters().retransmit_packets.Read(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, QpPair,
                         ::testing::Combine(::testing::Values(Trouble{"none", 0, 0, 0, 0},
                                                              Trouble{"drop", 0.02, 0, 0, 0},
                                                              Trouble{"duplicate", 0, 0.1, 0, 0},
                                                              Trouble{"reorder", 0, 0, 0.05, 0},
                                                              Trouble{"corrupt", 0, 0, 0, 0.02},
                                                              Trouble{"everything", 0.03, 0.03,
                                                                      0.03, 0.03}),
                                            ::testing::Values(1, 3, 5), ::testing::Values(1, 2, 3)),
                         [](const auto& parameters) {
                           return std::string(std::get<0>(parameters.param).name) + "_mtu" +
                                  std::to_string(std::get<1>(parameters.param)) + "_seed" +
                                  std::to_string(std::get<2>(parameters.param));
                         });

}  // namespace
}  // namespace rocegw::testing
