// SPDX-License-Identifier: Apache-2.0
// A program whose memory the worker must not access itself, and which blocks such accesses: only
// its own requests wait, even on a shared channel.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "gateway/memory/copier.h"
#include "gateway/tenant/share.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

// Memory that reads as zeros once it is opened; accesses wait until then.
class WaitingMemory final : public memory::MemorySpace {
 public:
  size_t Execute(std::span<memory::MemoryOp> ops, memory::MemoryCounts&) override {
    open_.wait(false, std::memory_order_acquire);
    for (const memory::MemoryOp& op : ops) {
      if (op.kind == memory::OpKind::kRead) std::fill_n(op.buffer, op.length, uint8_t{0});
    }
    return ops.size();
  }
  void Open() {
    open_.store(true, std::memory_order_release);
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
};

// Parameter: whether queue pairs use channels.
class UntrustedMemory : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr uint32_t kLength = 8 << 10;  // 32 packets

  UntrustedMemory() {
    auto copier = memory::Copier::Start(memory_, nullptr, {});
    copier_ = std::move(*copier);
    GatewayPairOptions options;
    options.shares[0] = {&first_, &second_};
    options.copiers[0] = {copier_.get(), nullptr};
    options.channels = GetParam();
    gateways_.emplace(options);
  }
  ~UntrustedMemory() override {
    memory_->Open();
    gateways_.reset();
  }

  RingEnd& Connected(uint32_t session, uint32_t qpn) { return *ConnectedPair(session, qpn).first; }
  std::pair<RingEnd*, RingEnd*> ConnectedPair(uint32_t session, uint32_t qpn) {
    RingOptions ring;
    ring.session = session;
    ring.qpn = qpn;
    ring.handle = qpn;
    RingEnd& from = gateways_->AddQp(0, ring);
    ring.session = 1;
    RingEnd& to = gateways_->AddQp(1, ring);
    gateways_->Connect(from, to, 1);
    return {&from, &to};
  }
  void Write(RingEnd& from, uint32_t session) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = GatewayPair::kBase;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    ASSERT_TRUE(
        from.PostSend(wqe, {{GatewayPair::kBase, kLength, GatewayPair::KeyOf(0, session).value}}));
    gateways_->Ring(0, from);
  }
  size_t CompletedWithin(RingEnd& end, size_t wanted, int steps) {
    size_t done = 0;
    for (int i = 0; i < steps && done < wanted; ++i) {
      gateways_->Step();
      for (const rocegw_cqe& cqe : end.Poll()) {
        EXPECT_EQ(cqe.status, 0u);
        ++done;
      }
      // The copier's thread needs the processor, too.
      std::this_thread::yield();
    }
    return done;
  }

  tenant::Share first_{nullptr};
  tenant::Share second_{nullptr};
  std::shared_ptr<WaitingMemory> memory_ = std::make_shared<WaitingMemory>();
  std::unique_ptr<memory::Copier> copier_;
  std::optional<GatewayPair> gateways_;
};

TEST_P(UntrustedMemory, Waits_OthersHavePacketsLeft) {
  std::vector<RingEnd*> blocked;
  for (uint32_t i = 0; i < 64; ++i) blocked.push_back(&Connected(1, 100 + i));
  RingEnd& other = Connected(2, 300);
  for (RingEnd* end : blocked) Write(*end, 1);
  // More packets than the port has buffers.
  for (int i = 0; i < 50; ++i) gateways_->Step();
  for (int i = 0; i < 20; ++i) {
    Write(other, 2);
    ASSERT_EQ(CompletedWithin(other, 1, 200), 1u) << i;
  }
  for (RingEnd* end : blocked) EXPECT_TRUE(end->Poll().empty());
  // The channel counts no loss, because no frame was entered.
  EXPECT_EQ(gateways_->Count(0, &metrics::WorkerCounters::channel_resent_packets), 0u);
  // After Open, waiting requests continue where they were.
  memory_->Open();
  size_t done = 0;
  for (int i = 0; i < 20000 && done < blocked.size(); ++i) {
    gateways_->Step();
    for (RingEnd* end : blocked) {
      for (const rocegw_cqe& cqe : end->Poll()) {
        EXPECT_EQ(cqe.status, 0u);
        ++done;
      }
    }
  }
  EXPECT_EQ(done, blocked.size());
}

// Ten sessions of one pool, each below its own limit, must not take all buffers of the port.
TEST(UntrustedPools, SessionsOfOnePool_LeavePacketsToOthers) {
  constexpr uint32_t kSessions = 10;
  constexpr uint32_t kLength = 8 << 10;
  tenant::Share first{nullptr};
  tenant::Share second{nullptr};
  const auto memory = std::make_shared<WaitingMemory>();
  std::vector<std::unique_ptr<memory::Copier>> copiers;
  GatewayPairOptions options;
  for (uint32_t i = 0; i < kSessions; ++i) {
    auto copier = memory::Copier::Start(memory, nullptr, {});
    ASSERT_TRUE(copier.ok());
    copiers.push_back(std::move(*copier));
    options.shares[0].push_back(&first);
    options.copiers[0].push_back(copiers.back().get());
  }
  options.shares[0].push_back(&second);
  options.copiers[0].push_back(nullptr);
  {
    GatewayPair gateways(options);
    const auto connected = [&](uint32_t session, uint32_t qpn) -> RingEnd& {
      RingOptions ring;
      ring.session = session;
      ring.qpn = ring.handle = qpn;
      RingEnd& from = gateways.AddQp(0, ring);
      ring.session = 1;
      RingEnd& to = gateways.AddQp(1, ring);
      gateways.Connect(from, to, 1);
      return from;
    };
    const auto write = [&](RingEnd& from, uint32_t session) {
      rocegw_send_wqe wqe{};
      wqe.opcode = ROCEGW_WR_RDMA_WRITE;
      wqe.flags = ROCEGW_WQE_SIGNALED;
      wqe.u.rdma.remote_address = GatewayPair::kBase;
      wqe.u.rdma.rkey = GatewayPair::kKey[1];
      ASSERT_TRUE(from.PostSend(
          wqe, {{GatewayPair::kBase, kLength, GatewayPair::KeyOf(0, session).value}}));
      gateways.Ring(0, from);
    };
    std::vector<RingEnd*> blocked;
    for (uint32_t session = 1; session <= kSessions; ++session)
      for (uint32_t i = 0; i < 6; ++i) blocked.push_back(&connected(session, session * 100 + i));
    RingEnd& other = connected(kSessions + 1, 3000);
    for (size_t i = 0; i < blocked.size(); ++i)
      write(*blocked[i], static_cast<uint32_t>(i / 6 + 1));
    for (int i = 0; i < 50; ++i) gateways.Step();
    EXPECT_GT(gateways.Count(0, &metrics::WorkerCounters::turn_held_back_events), 0u);
    write(other, kSessions + 1);
    size_t done = 0;
    for (int i = 0; i < 200 && done == 0; ++i) {
      gateways.Step();
      done += other.Poll().size();
    }
    EXPECT_EQ(done, 1u) << "the other pool sends";
    memory->Open();
    done = 0;
    for (int i = 0; i < 20000 && done < blocked.size(); ++i) {
      gateways.Step();
      for (RingEnd* end : blocked) done += end->Poll().size();
      std::this_thread::yield();
    }
    EXPECT_EQ(done, blocked.size());
  }
}

TEST_P(UntrustedMemory, TrustedSessionGetsACopier_BeforeItsQueuePairs) {
  auto second = memory::Copier::Start(memory_, nullptr, {});
  ASSERT_TRUE(second.ok());
  const std::unique_ptr<memory::Copier> copier = std::move(*second);
  ASSERT_EQ(gateways_->Call(0, 0, {0, worker::UseCopier{SessionId{2}, copier.get()}}).error, 0);
  RingEnd& other = Connected(2, 300);
  constexpr size_t kWrites = 6;
  for (size_t i = 0; i < kWrites; ++i) Write(other, 2);
  EXPECT_EQ(CompletedWithin(other, 1, 200), 0u) << "the copier's memory waits";
  memory_->Open();
  EXPECT_EQ(CompletedWithin(other, kWrites, 20000), kWrites);
  gateways_->Remove(0, other);
  EXPECT_EQ(gateways_->Call(0, 0, {0, worker::UnlinkSession{SessionId{2}}}).error, 0);
  EXPECT_EQ(gateways_->Call(0, 0, {0, worker::UseCopier{SessionId{2}, copier.get()}}).error,
            ENOENT);
}

TEST_P(UntrustedMemory, Waits_WhoseItIsMayGo) {
  RingEnd& removed = Connected(1, 100);
  RingEnd& left = Connected(1, 101);
  RingEnd& other = Connected(2, 300);
  Write(removed, 1);
  Write(left, 1);
  for (int i = 0; i < 50; ++i) gateways_->Step();
  gateways_->Remove(0, removed);
  Write(other, 2);
  EXPECT_EQ(CompletedWithin(other, 1, 200), 1u);
  gateways_->Remove(0, left);
  EXPECT_EQ(gateways_->Call(0, 0, {0, worker::UnlinkSession{SessionId{1}}}).error, 0);
  memory_->Open();
  Write(other, 2);
  EXPECT_EQ(CompletedWithin(other, 1, 200), 1u);
}

// A session keeps its staged carrier when its last queue pair goes, and the channel ends later.
TEST_P(UntrustedMemory, ChannelThatNobodyUses_Ends_AndTheWorkerIsHandedOver) {
  memory_->Open();
  const auto [only, peer] = ConnectedPair(1, 100);
  Write(*only, 1);
  ASSERT_EQ(CompletedWithin(*only, 1, 20000), 1u);
  gateways_->Remove(0, *only);
  gateways_->Remove(1, *peer);
  for (int i = 0; i < 1000; ++i) gateways_->Step(Milliseconds(100));
  EXPECT_EQ(gateways_->Count(0, &metrics::WorkerCounters::channel_close_events),
            GetParam() ? 1u : 0u);
  worker::Worker& worker = gateways_->worker(0, 0);
  while (!worker.Rest(gateways_->now())) {
  }
  std::vector<uint8_t> state;
  const hand_over::StateVersions versions;
  hand_over::StateStream out(state, gateways_->now(), versions);
  worker.HandOver(out);
  ASSERT_TRUE(out.ok()) << out.failure();

  GatewayPairOptions options;
  options.shares[0] = {&first_, &second_};
  options.copiers[0] = {copier_.get(), nullptr};
  options.channels = GetParam();
  GatewayPair successors(options);
  hand_over::StateStream in(state, successors.now());
  successors.worker(0, 0).HandOver(in);
  EXPECT_TRUE(in.ok()) << in.failure();
}

// Copier that executes in Submit, so that virtual time stays exact.
class PromptCopier final : public memory::Copier {
 public:
  explicit PromptCopier(memory::MemorySpace& memory) : memory_(memory) {}
  bool Submit(WorkerIndex, std::unique_ptr<memory::Batch>& batch) override {
    memory::ExecuteBatch(memory_, *batch);
    done_.push_back(std::move(batch));
    return true;
  }
  std::unique_ptr<memory::Batch> Collect(WorkerIndex) override {
    if (done_.empty()) return nullptr;
    std::unique_ptr<memory::Batch> batch = std::move(done_.front());
    done_.pop_front();
    return batch;
  }
  void Stop() override {}

 private:
  memory::MemorySpace& memory_;
  std::deque<std::unique_ptr<memory::Batch>> done_;
};

// Copier that executes nothing and keeps what it gets.
class StuckCopier final : public memory::Copier {
 public:
  bool Submit(WorkerIndex, std::unique_ptr<memory::Batch>& batch) override {
    if (batches_.size() == 64) return false;
    operations += batch->ops.size();
    batches_.push_back(std::move(batch));
    return true;
  }
  std::unique_ptr<memory::Batch> Collect(WorkerIndex) override { return nullptr; }
  void Stop() override {}

  size_t operations = 0;

 private:
  std::vector<std::unique_ptr<memory::Batch>> batches_;
};

// An operation on one byte costs the daemon more than that byte.
TEST(UntrustedPools, ManyShortWritesToBlockedMemory_AreRefusedInTime) {
  tenant::Share share{nullptr};
  StuckCopier copier;
  GatewayPairOptions options;
  options.shares[1] = {&share};
  options.copiers[1] = {&copier};
  options.channels = true;
  GatewayPair gateways(options);
  constexpr uint32_t kEach = 8192;
  for (uint32_t i = 0; i < 4; ++i) {
    RingOptions ring;
    ring.qpn = ring.handle = 100 + i;
    ring.sq_entries = kEach;
    RingEnd& from = gateways.AddQp(0, ring);
    RingEnd& to = gateways.AddQp(1, ring);
    gateways.Connect(from, to, 1);
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.u.rdma.remote_address = GatewayPair::kBase;
    wqe.u.rdma.rkey = GatewayPair::KeyOf(1, 1).value;
    for (uint32_t k = 0; k < kEach; ++k)
      ASSERT_TRUE(from.PostSend(wqe, {{GatewayPair::kBase, 1, GatewayPair::KeyOf(0, 1).value}}));
    gateways.Ring(0, from);
  }
  for (int i = 0; i < 2000; ++i) gateways.Step();
  EXPECT_GT(copier.operations, 100u);
  // With those that wait, about 12,000 of the 32,768.
  EXPECT_LT(copier.operations, 8000u);
  EXPECT_GT(gateways.Count(1, &metrics::WorkerCounters::rnr_tx_packets), 0u);
}

// Both wait for the same channel, whose receiver has a small window.
class TwoTenants : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, TwoTenants, ::testing::Bool(), [](const auto& memory) {
  return std::string(memory.param ? "Trusted" : "Untrusted");
});

TEST_P(TwoTenants, ManyShortFrames_DoNotTakeTheTurnsOfLongOnes) {
  WaitingMemory memory;
  memory.Open();
  tenant::Share first{nullptr};
  tenant::Share second{nullptr};
  PromptCopier of_first(memory);
  PromptCopier of_second(memory);
  GatewayPairOptions options;
  options.shares[0] = {&first, &second};
  if (!GetParam()) options.copiers[0] = {&of_first, &of_second};
  options.channels = true;
  options.channel_window = 16;
  GatewayPair gateways(options);
  const auto connected = [&](uint32_t session, uint32_t qpn) -> RingEnd& {
    RingOptions ring;
    ring.session = session;
    ring.qpn = ring.handle = qpn;
    ring.tenant_tag = session;
    RingEnd& from = gateways.AddQp(0, ring);
    ring.session = 1;
    RingEnd& to = gateways.AddQp(1, ring);
    gateways.Connect(from, to);
    return from;
  };
  const auto write = [&](RingEnd& from, uint32_t session, uint32_t length) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = GatewayPair::kBase;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    ASSERT_TRUE(
        from.PostSend(wqe, {{GatewayPair::kBase, length, GatewayPair::KeyOf(0, session).value}}));
    gateways.Ring(0, from);
  };
  std::vector<RingEnd*> crowd;
  for (uint32_t i = 0; i < 8; ++i) crowd.push_back(&connected(1, 100 + i));
  RingEnd& other = connected(2, 300);
  for (RingEnd* end : crowd)
    for (int i = 0; i < 8; ++i) write(*end, 1, 64);
  for (int i = 0; i < 4; ++i) write(other, 2, 4096);
  size_t of_crowd = 0;
  size_t of_other = 0;
  for (int i = 0; i < 100000 && of_other < 50; ++i) {
    gateways.Step();
    for (RingEnd* end : crowd) {
      for (size_t left = end->Poll().size(); left != 0; --left, ++of_crowd) write(*end, 1, 64);
    }
    for (size_t left = other.Poll().size(); left != 0; --left, ++of_other) write(other, 2, 4096);
  }
  EXPECT_GE(of_other, 50u) << "while the crowd had " << of_crowd;
  // A quantum is 15 short frames or 3 long ones.
  EXPECT_LT(of_crowd, 50u * 15);
}

INSTANTIATE_TEST_SUITE_P(Ways, UntrustedMemory, ::testing::Bool(), [](const auto& way) {
  return std::string(way.param ? "Channel" : "Native");
});

}  // namespace
}  // namespace rocegw::testing
