// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/workers/worker_requests.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <variant>

#include "gateway/base/unique_fd.h"

namespace rocegw::session {
namespace {

class ToOneWorker : public ::testing::Test {
 protected:
  ToOneWorker() { link.worker_wake_fd = wake.get(); }
  bool Woken() {
    uint64_t value = 0;
    return ::read(wake.get(), &value, sizeof value) == sizeof value;
  }

  UniqueFd wake{::eventfd(0, EFD_NONBLOCK)};
  worker::WorkerLink link;
  WorkerRequests requests{{&link}};
};

TEST_F(ToOneWorker, Flush_WakesWhoSleeps_OncePerRound) {
  requests.Tell(0, worker::UnlinkSession{});
  requests.Tell(0, worker::UnlinkSession{});
  EXPECT_FALSE(Woken());
  EXPECT_FALSE(requests.Flush());
  EXPECT_TRUE(Woken());
  EXPECT_FALSE(requests.Flush());
  EXPECT_FALSE(Woken()) << "nothing new";
}

TEST_F(ToOneWorker, Flush_LeavesWhoIsAwakeAlone) {
  link.worker_awake = true;
  requests.Tell(0, worker::UnlinkSession{});
  EXPECT_FALSE(requests.Flush());
  EXPECT_FALSE(Woken());
  EXPECT_FALSE(link.to_worker.empty());
  link.worker_awake = false;
  requests.Tell(0, worker::UnlinkSession{});
  EXPECT_FALSE(requests.Flush());
  EXPECT_TRUE(Woken());
}

TEST_F(ToOneWorker, TryTell_WhatHasTimeWakesNobodyAndGoesInOrder) {
  using Haste = WorkerRequests::Haste;
  ASSERT_TRUE(requests.TryTell(0, worker::UnlinkCq{SessionId{1}, 7}, Haste::kWhenAwake));
  EXPECT_FALSE(requests.Flush());
  EXPECT_FALSE(Woken());
  ASSERT_TRUE(requests.TryTell(0, worker::UnlinkSession{SessionId{1}}));
  EXPECT_FALSE(requests.Flush());
  EXPECT_TRUE(Woken());
  worker::ControlMessage message;
  ASSERT_TRUE(link.to_worker.Pop(message));
  EXPECT_TRUE(std::holds_alternative<worker::UnlinkCq>(message.body));
  ASSERT_TRUE(link.to_worker.Pop(message));
  EXPECT_TRUE(std::holds_alternative<worker::UnlinkSession>(message.body));
}

TEST_F(ToOneWorker, Silent_FromTheFirstQuestionOrTheLastAnswerWhileAnotherIsOwed) {
  const auto later = [](Duration by) { return ControlLoop::Now() + by; };
  requests.Tell(0, worker::UnlinkSession{});
  EXPECT_EQ(requests.silent(0, later(Seconds(100))), Duration{}) << "nothing was asked";
  for (int i = 0; i < 2; ++i) requests.Send(0, worker::SnapshotPeers{}, [](const auto&) {});
  EXPECT_GE(requests.silent(0, later(Seconds(100))), Seconds(100));

  worker::ControlMessage asked;
  ASSERT_TRUE(link.to_worker.Pop(asked));
  ASSERT_TRUE(link.to_worker.Pop(asked));
  const TimePoint before = ControlLoop::Now();
  ASSERT_TRUE(link.to_control.Push({asked.cookie, worker::ControlReply{}}));
  requests.Work();
  EXPECT_LE(requests.silent(0, before + Seconds(100)), Seconds(100))
      << "it has just said something";
  EXPECT_GT(requests.silent(0, later(Seconds(100))), Duration{}) << "it owes one more";

  ASSERT_TRUE(link.to_worker.Pop(asked));
  ASSERT_TRUE(link.to_control.Push({asked.cookie, worker::ControlReply{}}));
  requests.Work();
  EXPECT_EQ(requests.silent(0, later(Seconds(100))), Duration{});
}

TEST_F(ToOneWorker, SetAwake_IsWhatWorkersLookAt) {
  EXPECT_FALSE(link.control_awake) << "until the loop says so";
  requests.SetAwake(true);
  EXPECT_TRUE(link.control_awake);
  requests.SetAwake(false);
  EXPECT_FALSE(link.control_awake);
}

TEST_F(ToOneWorker, Work_TakesWhatCame) {
  EXPECT_FALSE(requests.HasWork());
  int told = 0;
  requests.on_peer_changed = [&](const worker::PeerChanged&) { ++told; };
  ASSERT_TRUE(link.to_control.Push({0, worker::PeerChanged{}}));
  EXPECT_TRUE(requests.HasWork());
  requests.Work();
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(requests.HasWork());
}

}  // namespace
}  // namespace rocegw::session
