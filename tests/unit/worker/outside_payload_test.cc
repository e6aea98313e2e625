// SPDX-License-Identifier: Apache-2.0
// Packets that refer to the program's memory instead of holding a copy: which packets do, and that
// no reference outlives the worker's iteration.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "gateway/worker/send/transmit_queue.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

using Counter = metrics::Counter metrics::WorkerCounters::*;

constexpr Counter kReferredBytes = &metrics::WorkerCounters::memory_reference_bytes;
constexpr Counter kCopiedBytes = &metrics::WorkerCounters::memory_direct_bytes;
constexpr uint32_t kShortest = 512;

// Parameter: whether queue pairs use channels. Side 0 writes from mapped memory.
class OutsidePayloadTest : public ::testing::TestWithParam<bool> {
 protected:
  void Begin(GatewayPairOptions options = {}) {
    options.reach = Reach::kDirect;
    options.channels = GetParam();
    options.outside_from = kShortest;
    gateways_.emplace(options);
    std::vector<uint8_t>& memory = gateways_->memory(0);
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 7 + i / 251);
    original_ = memory;
    RingOptions ring;
    ring.qpn = 77;
    from_ = &gateways_->AddQp(0, ring);
    ring.qpn = 78;
    to_ = &gateways_->AddQp(1, ring);
    gateways_->Connect(*from_, *to_);
    // Opens the channel.
    Write(Own(0, 8));
    ASSERT_TRUE(Completes());
  }
  void Write(const RingEnd::Sges& sges) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = gateways_->Base(1);
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    ASSERT_TRUE(from_->PostSend(wqe, sges));
    gateways_->Ring(0, *from_);
  }
  RingEnd::Sges Own(uint64_t offset, uint32_t length) {
    return {{gateways_->Base(0) + offset, length, GatewayPair::kKey[0]}};
  }
  bool Completes() {
    for (int i = 0; i < 20000; ++i) {
      gateways_->Step();
      for (const rocegw_cqe& cqe : from_->Poll()) return cqe.status == 0;
    }
    return false;
  }
  bool Arrived(uint64_t offset, uint32_t length) {
    return std::equal(original_.begin() + static_cast<ptrdiff_t>(offset),
                      original_.begin() + static_cast<ptrdiff_t>(offset + length),
                      gateways_->memory(1).begin());
  }
  uint64_t Count(Counter counter) { return gateways_->Count(0, counter); }

  std::optional<GatewayPair> gateways_;
  std::vector<uint8_t> original_;
  RingEnd* from_ = nullptr;
  RingEnd* to_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Transports, OutsidePayloadTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Channel" : "Native"; });

TEST_P(OutsidePayloadTest, LongWrite_IsCopiedByNobodyHere) {
  Begin();
  Write(Own(3, 100001));
  ASSERT_TRUE(Completes());
  EXPECT_TRUE(Arrived(3, 100001));
  // All but the short first write and perhaps a short last packet.
  EXPECT_GT(Count(kReferredBytes), 100001u - kShortest);
  EXPECT_EQ(Count(kReferredBytes) + Count(kCopiedBytes), 8 + 100001u);
}

TEST_P(OutsidePayloadTest, ShortPayload_IsCopied) {
  Begin();
  Write(Own(0, kShortest - 1));
  ASSERT_TRUE(Completes());
  EXPECT_TRUE(Arrived(0, kShortest - 1));
  EXPECT_EQ(Count(kReferredBytes), 0u);
}

TEST_P(OutsidePayloadTest, PacketOfTwoPieces_IsCopied) {
  Begin();
  RingEnd::Sges sges = Own(0, 1000);
  sges.push_back(Own(1000, 1000)[0]);
  Write(sges);
  ASSERT_TRUE(Completes());
  EXPECT_TRUE(Arrived(0, 2000));
  EXPECT_EQ(Count(kReferredBytes), 0u);
}

// A program that writes to its memory all the time would spoil each repetition.
TEST_P(OutsidePayloadTest, RepeatedPacket_IsCopied) {
  TamperScript script(1);
  GatewayPairOptions options;
  options.script = &script;
  Begin(options);
  Write(Own(0, 2048));
  ASSERT_TRUE(Completes());
  script.Add({.action = TamperAction::kDrop, .direction = 1, .times = 1});
  Write(Own(0, 2048));
  const uint64_t copied = Count(kCopiedBytes);
  ASSERT_TRUE(Completes());
  EXPECT_EQ(Count(kReferredBytes), 2 * 2048u);
  EXPECT_EQ(Count(kCopiedBytes), copied + 2048u);
}

// The port is full. The worker answers the deregistration while packets wait; the program may unmap
// its memory then, and the gateway unmaps it as well.
TEST_P(OutsidePayloadTest, UnlinkRegion_WaitingPacketsHaveTheirBytes) {
  GatewayPairOptions options;
  options.queue_depth = 2;
  Begin(options);
  constexpr uint32_t kLength = 6 * 4096;
  Write(Own(0, kLength));
  // Nothing takes the packets of side 0 until both calls have returned.
  gateways_->RunWorker(0, 0, gateways_->now());
  ASSERT_GT(Count(kReferredBytes), 0u);
  const worker::UnlinkRegion unlink{SessionId{1}, MemoryKey{GatewayPair::kKey[0]}};
  ASSERT_EQ(gateways_->Call(0, 0, {0, unlink}).error, 0);
  const uint64_t sent = Count(kReferredBytes);
  std::fill(gateways_->memory(0).begin(), gateways_->memory(0).end(), uint8_t{0xEE});
  for (int i = 0; i < 50; ++i) gateways_->Step();
  EXPECT_TRUE(Arrived(0, static_cast<uint32_t>(sent)));
}

// The program may change what a READ reads while the response is under way.
TEST_P(OutsidePayloadTest, ReadResponse_IsCopied) {
  Begin();
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_READ;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  wqe.u.rdma.remote_address = gateways_->Base(1);
  wqe.u.rdma.rkey = GatewayPair::kKey[1];
  const uint64_t copied = gateways_->Count(1, kCopiedBytes);
  ASSERT_TRUE(from_->PostSend(wqe, Own(0, 20000)));
  gateways_->Ring(0, *from_);
  ASSERT_TRUE(Completes());
  EXPECT_EQ(gateways_->Count(1, kReferredBytes), 0u);
  EXPECT_EQ(gateways_->Count(1, kCopiedBytes), copied + 20000u);
}

// A request of an unreliable queue pair completes when its packets are queued.
TEST(OutsidePayload, UnreliableConnection_IsCopied) {
  GatewayPairOptions options;
  options.reach = Reach::kDirect;
  options.outside_from = 1;
  GatewayPair gateways(options);
  RingOptions ring;
  ring.type = verbs::QpType::kUc;
  ring.qpn = 77;
  RingEnd& from = gateways.AddQp(0, ring);
  ring.qpn = 78;
  RingEnd& to = gateways.AddQp(1, ring);
  gateways.Connect(from, to);
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_WRITE;
  wqe.u.rdma.remote_address = gateways.Base(1);
  wqe.u.rdma.rkey = GatewayPair::kKey[1];
  ASSERT_TRUE(from.PostSend(wqe, {{gateways.Base(0), 10000, GatewayPair::kKey[0]}}));
  gateways.Ring(0, from);
  for (int i = 0; i < 20; ++i) gateways.Step();
  EXPECT_EQ(gateways.Count(0, kReferredBytes), 0u);
  EXPECT_EQ(gateways.Count(0, kCopiedBytes), 10000u);
}

class NoChannels final : public channel::Owner {
 public:
  port::TxPacket* NewChannelPacket(uint32_t) override { return nullptr; }
  size_t MaxDatagram(uint32_t, const wire::Gid&) const override { return 0; }
  void SendChannelPacket(uint32_t, port::TxPacket*) override {}
  flow::Resend BuildAgain(const flow::Carrier&, const flow::FrameRef&, Psn) override {
    return flow::Resend::kVoid;
  }
  void OnArrived(const flow::Carrier&, const flow::FrameRef&) override {}
  void OnTurn(const flow::Carrier&, WorkerObject) override {}
  void OnChannelGone(const flow::Carrier&, bool, wire::ChannelReason) override {}
  void ArmChannel(uint32_t, TimePoint) override {}
};

TEST(OutsidePayload, CopyPayloads_EndsTheReferencesOfWaitingPackets) {
  port::PairLink link;
  const worker::Ports ports{&link.port(0)};
  metrics::WorkerCounters counters;
  worker::Scheduler scheduler(nullptr, 0);
  NoChannels owner;
  channel::ChannelSet channels(counters, owner);
  worker::TransmitQueue queue(ports, scheduler, channels, counters);
  std::vector<uint8_t> memory(1000, 0x5A);
  port::TxPacket* const packet = link.port(0).Acquire();
  packet->length = 1012;
  packet->outside = {memory.data(), 12, 1000};
  queue.Add({packet, 0});
  EXPECT_TRUE(packet->refers());
  queue.CopyPayloads();
  EXPECT_FALSE(packet->refers());
  EXPECT_EQ(std::count(packet->data + 12, packet->data + 1012, 0x5A), 1000);
  EXPECT_EQ(packet->known_crc.length, 1000u);
  EXPECT_EQ(packet->known_crc.crc, wire::CrcUpdate(0, memory));
}

}  // namespace
}  // namespace rocegw::testing
