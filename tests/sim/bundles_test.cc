// SPDX-License-Identifier: Apache-2.0
// Small messages of several queue pairs share datagrams between two gateways: with a peer that
// takes bundles and with one that does not, and when datagrams are lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

using metrics::WorkerCounters;

class Bundles : public ::testing::Test {
 protected:
  static constexpr uint32_t kPairs = 8;
  static constexpr uint32_t kBytes = 64;
  static constexpr uint32_t kDepth = 16;
  static constexpr uint32_t kMessages = 200;  // per queue pair
  static constexpr uint64_t kTarget = 256 << 10;

  void Start(GatewayPairOptions options = {}) {
    options.channels = true;
    gateways_ = std::make_unique<GatewayPair>(options);
    for (uint32_t i = 0; i < kPairs; ++i) {
      RingOptions ring;
      ring.sq_entries = ring.rq_entries = 32;
      ring.handle = i + 1;
      ring.qpn = 100 + i;
      senders_.push_back(&gateways_->AddQp(0, ring));
      ring.qpn = 200 + i;
      receivers_.push_back(&gateways_->AddQp(1, ring));
      gateways_->Connect(*senders_[i], *receivers_[i], 5);
    }
  }

  void Stop() {
    senders_.clear();
    receivers_.clear();
    gateways_.reset();
  }

  // Bytes of message `number` of a queue pair.
  static uint8_t ByteOf(uint32_t qp, uint32_t number) {
    return static_cast<uint8_t>(qp * 31 + number + 1);
  }
  static uint64_t PlaceOf(uint32_t qp, uint32_t number) {
    return (uint64_t{qp} * kDepth + number % kDepth) * kBytes;
  }

  // Each queue pair moves its messages by WRITE or SEND; each message is checked when it is done.
  void MoveAll(uint8_t opcode) {
    std::vector<uint32_t> posted(kPairs), done(kPairs), received(kPairs);
    uint32_t left = kPairs * kMessages;
    for (int step = 0; step < 200000 && left != 0; ++step) {
      for (uint32_t i = 0; i < kPairs; ++i) Post(opcode, i, posted[i], done[i]);
      gateways_->Step();
      for (uint32_t i = 0; i < kPairs; ++i) {
        for (const rocegw_cqe& cqe : receivers_[i]->Poll()) {
          ASSERT_EQ(cqe.status, 0);
          ASSERT_EQ(cqe.byte_length, kBytes);
          ++received[i];
        }
        for (const rocegw_cqe& cqe : senders_[i]->Poll()) {
          ASSERT_EQ(cqe.status, 0) << "message " << done[i] << " of " << i;
          const auto there =
              gateways_->memory(1).begin() + static_cast<ptrdiff_t>(kTarget + PlaceOf(i, done[i]));
          ASSERT_TRUE(std::all_of(there, there + kBytes,
                                  [&](uint8_t byte) { return byte == ByteOf(i, done[i]); }))
              << "message " << done[i] << " of " << i;
          ++done[i];
          --left;
        }
      }
    }
    ASSERT_EQ(left, 0u);
    if (opcode != ROCEGW_WR_SEND) return;
    for (uint32_t i = 0; i < kPairs; ++i) EXPECT_EQ(received[i], kMessages);
  }

  uint64_t Count(int side, metrics::Counter WorkerCounters::*counter) const {
    return gateways_->Count(side, counter);
  }

  std::unique_ptr<GatewayPair> gateways_;

 private:
  void Post(uint8_t opcode, uint32_t i, uint32_t& posted, uint32_t done) {
    while (posted < kMessages && posted - done < kDepth) {
      const uint64_t place = PlaceOf(i, posted);
      if (opcode == ROCEGW_WR_SEND) {
        ASSERT_TRUE(receivers_[i]->PostReceive(
            posted, {{GatewayPair::kBase + kTarget + place, kBytes, GatewayPair::kKey[1]}}));
      }
      rocegw_send_wqe wqe{};
      wqe.opcode = opcode;
      wqe.flags = ROCEGW_WQE_SIGNALED;
      wqe.u.rdma.remote_address = GatewayPair::kBase + kTarget + place;
      wqe.u.rdma.rkey = GatewayPair::kKey[1];
      std::fill_n(gateways_->memory(0).begin() + static_cast<ptrdiff_t>(place), kBytes,
                  ByteOf(i, posted));
      ASSERT_TRUE(
          senders_[i]->PostSend(wqe, {{GatewayPair::kBase + place, kBytes, GatewayPair::kKey[0]}}));
      ++posted;
    }
    gateways_->Ring(1, *receivers_[i]);
    gateways_->Ring(0, *senders_[i]);
  }

  std::vector<RingEnd*> senders_;
  std::vector<RingEnd*> receivers_;
};

TEST_F(Bundles, SmallMessagesOfAllQueuePairs_ShareDatagrams) {
  Start();
  MoveAll(ROCEGW_WR_RDMA_WRITE);
  MoveAll(ROCEGW_WR_SEND);
  const uint64_t frames = Count(1, &WorkerCounters::channel_rx_packets);
  const uint64_t bundles = Count(0, &WorkerCounters::channel_bundle_tx_packets);
  EXPECT_EQ(frames, 2u * kPairs * kMessages);
  EXPECT_EQ(Count(1, &WorkerCounters::channel_bundle_rx_packets), bundles);
  EXPECT_LT(Count(0, &WorkerCounters::tx_packets), frames / 10) << "datagrams";
  EXPECT_GT(Count(0, &WorkerCounters::channel_bundled_tx_packets), frames * 9 / 10);
  EXPECT_EQ(Count(0, &WorkerCounters::channel_resent_packets), 0u);
}

TEST_F(Bundles, Acknowledgements_LeaveWithTheFramesOfTheirBurst) {
  Start();
  MoveAll(ROCEGW_WR_RDMA_WRITE);
  // The receiver's replies and acknowledgements of a burst are one datagram.
  const uint64_t acknowledgements = Count(1, &WorkerCounters::channel_ack_tx_packets);
  const uint64_t replies = Count(0, &WorkerCounters::channel_rx_packets);
  EXPECT_GT(acknowledgements, 0u);
  EXPECT_LT(Count(1, &WorkerCounters::tx_packets), acknowledgements + replies);
  EXPECT_GT(Count(1, &WorkerCounters::channel_bundle_tx_packets), 0u);
}

// A gateway of the release before does not offer the option.
TEST_F(Bundles, PeerWithoutTheOption_GetsEachFrameAlone) {
  for (const int side : {0, 1}) {
    GatewayPairOptions options;
    options.channel_features[side] &= ~uint32_t{wire::kOptionBundles};
    Start(options);
    MoveAll(ROCEGW_WR_RDMA_WRITE);
    for (const int end : {0, 1}) {
      EXPECT_EQ(Count(end, &WorkerCounters::channel_bundle_tx_packets), 0u);
      EXPECT_EQ(Count(end, &WorkerCounters::channel_bundle_rx_packets), 0u);
    }
    EXPECT_GE(Count(1, &WorkerCounters::rx_packets), uint64_t{kPairs} * kMessages);
    Stop();
  }
}

TEST_F(Bundles, LostDatagrams_AreRecovered) {
  for (const uint8_t opcode : {ROCEGW_WR_RDMA_WRITE, ROCEGW_WR_SEND}) {
    TamperScript script(11);
    script.Set({.drop = 0.1, .delay = 0.05, .duplicate = 0.1});
    GatewayPairOptions options;
    options.script = &script;
    Start(options);
    MoveAll(opcode);
    EXPECT_GT(Count(0, &WorkerCounters::channel_resent_packets), 0u);
    EXPECT_GT(Count(0, &WorkerCounters::channel_bundle_tx_packets), 0u);
    Stop();
  }
}

// A damaged datagram loses all its frames and nothing else.
TEST_F(Bundles, DamagedDatagrams_ChangeNothing) {
  TamperScript script(12);
  script.Set({.corrupt = 0.2});
  GatewayPairOptions options;
  options.script = &script;
  Start(options);
  MoveAll(ROCEGW_WR_SEND);
  EXPECT_GT(Count(1, &WorkerCounters::channel_rx_packets), 0u);
}

}  // namespace
}  // namespace rocegw::testing
