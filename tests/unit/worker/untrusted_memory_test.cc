// SPDX-License-Identifier: Apache-2.0
// A program whose memory the worker must not touch itself, and which makes its memory wait: its own
// requests wait with it, and nobody else's; on a channel that they share, neither.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "gateway/memory/copier.h"
#include "gateway/tenant/share.h"
#include "tests/support/gateway_pair.h"

namespace rocegw::testing {
namespace {

// All zeros, once it may be read.
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

// Whether queue pairs ride on channels.
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

  RingEnd& Connected(uint32_t session, uint32_t qpn) {
    RingOptions ring;
    ring.session = session;
    ring.qpn = qpn;
    ring.handle = qpn;
    RingEnd& from = gateways_->AddQp(0, ring);
    ring.session = 1;
    RingEnd& to = gateways_->AddQp(1, ring);
    gateways_->Connect(from, to, 1);
    return from;
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
  // More packets than the port has in all.
  for (int i = 0; i < 50; ++i) gateways_->Step();
  for (int i = 0; i < 20; ++i) {
    Write(other, 2);
    ASSERT_EQ(CompletedWithin(other, 1, 200), 1u) << i;
  }
  for (RingEnd* end : blocked) EXPECT_TRUE(end->Poll().empty());
  // To a channel it is no loss: nothing was entered there.
  EXPECT_EQ(gateways_->Count(0, &metrics::WorkerCounters::channel_resent_packets), 0u);
  // What waited goes on where it was.
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

INSTANTIATE_TEST_SUITE_P(Ways, UntrustedMemory, ::testing::Bool(), [](const auto& way) {
  return std::string(way.param ? "Channel" : "Native");
});

}  // namespace
}  // namespace rocegw::testing
