// SPDX-License-Identifier: Apache-2.0
// Events of completion queues whose program reads none, or is late.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

// A connected queue pair whose event channel is full.
class FullEventChannel : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, channel_), 0);
    const char other = 0;
    while (send(channel_[0], &other, sizeof other, MSG_DONTWAIT) > 0) {
    }
    RingOptions options;
    options.qpn = 0x100;
    options.event_fd = channel_[0];
    local_ = &gateways_.AddQp(0, options);
    options.qpn = 0x200;
    options.event_fd = -1;
    gateways_.Connect(*local_, gateways_.AddQp(1, options));
  }
  void TearDown() override {
    for (const int fd : channel_) close(fd);
  }

  // Completes a request for whose completion the program has asked an event.
  void Complete() {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = GatewayPair::kBase;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    local_->Arm(ROCEGW_CQ_ARM_ANY);
    ASSERT_TRUE(local_->PostSend(wqe, {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
    gateways_.Ring(0, *local_);
    for (int i = 0; i < 100; ++i) {
      gateways_.Step();
      if (!local_->Poll().empty()) return;
    }
    FAIL() << "no completion";
  }
  // Empties the channel. Returns the number of completion events in it.
  int Read() {
    int events = 0;
    rocegw_completion_event event;
    ssize_t length;
    while ((length = recv(channel_[1], &event, sizeof event, 0)) > 0)
      events += length == static_cast<ssize_t>(sizeof event) ? 1 : 0;
    return events;
  }
  uint64_t Sent() const { return gateways_.Count(0, &metrics::WorkerCounters::cq_event_events); }

  int channel_[2];
  GatewayPair gateways_{{}};
  RingEnd* local_ = nullptr;
};

TEST_F(FullEventChannel, NeverRead_TheWorkerSleeps) {
  Complete();
  for (int i = 0; i < 1000; ++i) gateways_.Step(Milliseconds(1));
  worker::Worker& worker = gateways_.worker(0, 0);
  EXPECT_EQ(Sent(), 0u);
  EXPECT_GT(worker.NextDeadline(), gateways_.now() + Milliseconds(1)) << "the next attempt";
  EXPECT_TRUE(worker.PrepareSleep(gateways_.now()));
  worker.FinishSleep();
}

TEST_F(FullEventChannel, ReadLate_TheEventComesOnce) {
  Complete();
  for (int i = 0; i < 1000; ++i) gateways_.Step(Milliseconds(1));
  EXPECT_EQ(Read(), 0);
  EXPECT_LE(gateways_.worker(0, 0).NextDeadline(), gateways_.now() + Milliseconds(50));
  for (int i = 0; i < 51; ++i) gateways_.Step(Milliseconds(1));
  EXPECT_EQ(Sent(), 1u);
  EXPECT_EQ(Read(), 1);
  // The channel is as good as any other afterwards.
  Complete();
  EXPECT_EQ(Read(), 1);
}

TEST_F(FullEventChannel, QueueRemoved_NothingIsSent) {
  Complete();
  gateways_.Remove(0, *local_);
  for (int i = 0; i < 1000; ++i) gateways_.Step(Milliseconds(1));  // timers of the queue pair
  EXPECT_EQ(gateways_.worker(0, 0).NextDeadline(), kNever);
  Read();
  for (int i = 0; i < 100; ++i) gateways_.Step(Milliseconds(1));
  EXPECT_EQ(Sent(), 0u);
}

}  // namespace
}  // namespace rocegw::testing
