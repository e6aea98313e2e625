// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "gateway/tenant/share.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

struct Ends {
  RingEnd& local;
  RingEnd& remote;
};

Ends Connected(GatewayPair& gateways) {
  RingOptions ring;
  ring.qpn = 77;
  RingEnd& local = gateways.AddQp(0, ring);
  ring.qpn = 78;
  RingEnd& remote = gateways.AddQp(1, ring);
  gateways.Connect(local, remote);
  return {local, remote};
}

// Posts one WRITE to gateway 1 and expects no answer: all retries, then the error.
void ExpectWriteUnanswered(GatewayPair& gateways, RingEnd& from) {
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_WRITE;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  wqe.u.rdma.remote_address = GatewayPair::kBase;
  wqe.u.rdma.rkey = GatewayPair::kKey[1];
  ASSERT_TRUE(from.PostSend(wqe, {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
  const TimePoint began = gateways.now();
  gateways.Ring(0, from);
  std::vector<rocegw_cqe> done;
  for (int i = 0; i < 20000 && done.empty(); ++i) {
    gateways.Step(Microseconds(100));
    done = from.Poll();
  }
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint8_t>(verbs::WcStatus::kRetryExceeded));
  // The first try and seven retries of 67 ms: not sooner, not much later.
  EXPECT_GE(gateways.now(), began + Milliseconds(8 * 67 - 1));
  EXPECT_LE(gateways.now(), began + Milliseconds(8 * 67 + 20));
}

TEST(Worker, UnlinkQp_WithTrafficInFlight_PeerIsAnsweredNothingAndRetries) {
  GatewayPair gateways({});
  const Ends ends = Connected(gateways);
  gateways.Remove(1, ends.remote);
  ExpectWriteUnanswered(gateways, ends.local);
}

rocegw_send_wqe WriteTo(int side) {
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_WRITE;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  wqe.u.rdma.remote_address = GatewayPair::kBase;
  wqe.u.rdma.rkey = GatewayPair::kKey[side];
  return wqe;
}

// A message that the program has seen is answered before its queue pair is destroyed, even if the
// pool's rate delays the answer: the program may have told its peer that the connection ends.
class QueuePairThatGoes : public ::testing::TestWithParam<bool> {
 protected:
  QueuePairThatGoes() {
    tenant::Quota quota;
    quota.peak[tenant::Rate::kPackets] = 1000;
    slow_.SetRates(quota);
    GatewayPairOptions options;
    options.shares[1] = {&slow_};
    options.channels = GetParam();
    gateways_.emplace(options);
    ends_.emplace(Connected(*gateways_));
  }
  // Sends until a message has arrived and its answer is held back.
  void SendUntilAnswerWaits() {
    rocegw_send_wqe send{};
    send.opcode = ROCEGW_WR_SEND;
    send.flags = ROCEGW_WQE_SIGNALED;
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(ends_->remote.PostReceive(i, {{GatewayPair::kBase, 100, GatewayPair::kKey[1]}}));
      gateways_->Ring(1, ends_->remote);
      ASSERT_TRUE(ends_->local.PostSend(send, {{GatewayPair::kBase, 8, GatewayPair::kKey[0]}}));
      gateways_->Ring(0, ends_->local);
      for (int step = 0; step < 50 && ends_->remote.Poll().empty(); ++step) gateways_->Step();
      gateways_->Step();
      if (ends_->local.Poll().empty()) return;
    }
    FAIL() << "every answer came at once";
  }
  void ExpectAnswered() {
    gateways_->Step(Microseconds(1));
    gateways_->Step(Microseconds(1));
    const auto done = ends_->local.Poll();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<uint8_t>(verbs::WcStatus::kSuccess));
  }

  tenant::Share slow_{nullptr};
  std::optional<GatewayPair> gateways_;
  std::optional<Ends> ends_;
};

TEST_P(QueuePairThatGoes, Unlinked_AnswersWhatItsProgramHasSeen) {
  SendUntilAnswerWaits();
  gateways_->Remove(1, ends_->remote);
  ExpectAnswered();
}

TEST_P(QueuePairThatGoes, ToError_AnswersWhatItsProgramHasSeen) {
  SendUntilAnswerWaits();
  verbs::QpAttributes want;
  want.state = verbs::QpState::kError;
  const worker::ModifyQp to_error{SessionId{1}, Qpn{ends_->remote.options().qpn}, verbs::kAttrState,
                                  want};
  ASSERT_EQ(gateways_->Call(1, 0, {0, to_error}).error, 0);
  ExpectAnswered();
}

// Unreliable services wait for no answer, so programs may destroy the queue pair at once.
TEST(Worker, UnlinkQp_Unreliable_WhatWasPostedHasLeft) {
  GatewayPair gateways({});
  RingOptions ring;
  ring.type = verbs::QpType::kUc;
  ring.qpn = 77;
  RingEnd& local = gateways.AddQp(0, ring);
  ring.qpn = 78;
  RingEnd& remote = gateways.AddQp(1, ring);
  gateways.Connect(local, remote);
  std::fill_n(gateways.memory(0).begin(), 10000, uint8_t{0x5C});
  rocegw_send_wqe wqe = WriteTo(1);
  wqe.flags = 0;
  ASSERT_TRUE(local.PostSend(wqe, {{GatewayPair::kBase, 10000, GatewayPair::kKey[0]}}));
  gateways.Remove(0, local);
  for (int i = 0; i < 10; ++i) gateways.Step();
  EXPECT_EQ(std::count(gateways.memory(1).begin(), gateways.memory(1).end(), uint8_t{0x5C}), 10000);
}

// A program that is killed: its queue pairs and its session go in one round. Packets of that round
// must carry what the program had, or nothing, and never what their buffers had before.
TEST(Worker, UnlinkQpAndSessionInOneRound_NoPacketHasBytesOfOthers) {
  GatewayPair gateways({});
  RingOptions ring;
  ring.type = verbs::QpType::kUc;
  ring.qpn = 77;
  RingEnd& local = gateways.AddQp(0, ring);
  ring.qpn = 78;
  RingEnd& remote = gateways.AddQp(1, ring);
  gateways.Connect(local, remote);
  std::fill(gateways.memory(0).begin(), gateways.memory(0).end(), uint8_t{0x5C});
  std::fill(gateways.memory(1).begin(), gateways.memory(1).end(), uint8_t{0xA1});
  rocegw_send_wqe wqe = WriteTo(1);
  wqe.flags = 0;
  ASSERT_TRUE(local.PostSend(wqe, {{GatewayPair::kBase, 10000, GatewayPair::kKey[0]}}));
  ASSERT_TRUE(gateways.Tell(0, 0, {0, worker::UnlinkQp{SessionId{1}, Qpn{77}}}));
  ASSERT_TRUE(gateways.Tell(0, 0, {0, worker::UnlinkSession{SessionId{1}}}));
  for (int i = 0; i < 10; ++i) gateways.Step();
  const auto& memory = gateways.memory(1);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), uint8_t{0x5C}), 10000);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), uint8_t{0xA1}),
            static_cast<ptrdiff_t>(memory.size()) - 10000);
}

INSTANTIATE_TEST_SUITE_P(, QueuePairThatGoes, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "OnChannel" : "Native"; });

// Counts every successful request, while the worker is busy and when its session closes.
TEST(Worker, OperationTimes_ReachThePool) {
  tenant::Share share{nullptr};
  GatewayPairOptions options;
  options.shares[0] = {&share};
  GatewayPair gateways(options);
  const Ends ends = Connected(gateways);
  const auto write = [&](uint16_t flags) {
    rocegw_send_wqe wqe = WriteTo(1);
    wqe.flags = flags;
    ASSERT_TRUE(ends.local.PostSend(wqe, {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
    gateways.Ring(0, ends.local);
    for (int i = 0; i < 5; ++i) gateways.Step(Microseconds(30));
  };
  gateways.Step();
  write(ROCEGW_WQE_SIGNALED);
  write(0);
  EXPECT_EQ(share.operations.Read().count(), 0u) << "not each by itself";
  gateways.Step(Milliseconds(100));
  gateways.Step();
  const metrics::DurationHistogram told = share.operations.Read();
  EXPECT_EQ(told.count(), 2u) << "signaled or not";
  // Fetched in one round, answered two rounds later.
  EXPECT_NEAR(static_cast<double>(told.sum_ns()), 60e3, 31e3);
  write(ROCEGW_WQE_SIGNALED);
  ASSERT_EQ(gateways.Call(0, 0, {0, worker::UnlinkSession{SessionId{1}}}).error, 0);
  EXPECT_EQ(share.operations.Read().count(), 3u);
}

TEST(Worker, OperationTimes_FailedOnesDoNotCount) {
  tenant::Share share{nullptr};
  GatewayPairOptions options;
  options.shares[0] = {&share};
  GatewayPair gateways(options);
  const Ends ends = Connected(gateways);
  gateways.Remove(1, ends.remote);
  ExpectWriteUnanswered(gateways, ends.local);
  gateways.Step(Milliseconds(100));
  gateways.Step();
  EXPECT_EQ(share.operations.Read().count(), 0u);
}

// Moderation by time: the event comes when the period ends, without any other event.
TEST(Worker, CompletionThatIsHeldBack_IsToldInTime) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
  GatewayPair gateways({});
  RingOptions ring;
  ring.qpn = 77;
  ring.event_fd = pair[0];
  RingEnd& local = gateways.AddQp(0, ring);
  ring.qpn = 78;
  ring.event_fd = -1;
  RingEnd& remote = gateways.AddQp(1, ring);
  gateways.Connect(local, remote);
  verbs::CqModeration moderation;
  const worker::ModerateCq told{SessionId{1}, local.options().handle, &moderation, 3,
                                Microseconds(500)};
  ASSERT_EQ(gateways.Call(0, 0, {0, told}).error, 0);
  local.Arm(ROCEGW_CQ_ARM_ANY);
  ASSERT_TRUE(local.PostSend(WriteTo(1), {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
  gateways.Ring(0, local);
  TimePoint completed = kNever;
  rocegw_completion_event event{};
  for (int i = 0; i < 200; ++i) {
    gateways.Step(Microseconds(10));
    if (completed == kNever && !local.Poll().empty()) completed = gateways.now();
    if (recv(pair[1], &event, sizeof event, 0) > 0) break;
  }
  ASSERT_NE(completed, kNever);
  EXPECT_GE(gateways.now(), completed + Microseconds(480));
  EXPECT_LE(gateways.now(), completed + Microseconds(520));
  close(pair[0]);
  close(pair[1]);
}

// Nothing else happens meanwhile: no answer, no timeout.
TEST(Worker, PacketThatWaitsInThePort_LeavesWithoutAnotherReason) {
  TamperScript script;
  script.ParkForFlushes(5);
  GatewayPair gateways({.script = &script});
  const Ends ends = Connected(gateways);
  ASSERT_TRUE(ends.local.PostSend(WriteTo(1), {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
  gateways.Ring(0, ends.local);
  for (int i = 0; i < 100 && ends.local.Poll().empty(); ++i) gateways.Step(Microseconds(10));
  EXPECT_EQ(gateways.Count(1, &metrics::WorkerCounters::rx_packets), 1u);
  EXPECT_EQ(gateways.Count(0, &metrics::WorkerCounters::tx_packets), 1u);
}

// The program knows that its queue pair receives before the worker has the message, and its peer
// sends at once.
TEST(Worker, PacketAheadOfItsMessage_FindsTheQueuePairReady) {
  GatewayPair gateways({});
  const Ends ends = Connected(gateways);
  const SessionId session{1};
  const Qpn qpn{ends.remote.options().qpn};
  verbs::QpAttributes want;
  want.state = verbs::QpState::kReset;
  ASSERT_EQ(gateways.Call(1, 0, {0, worker::ModifyQp{session, qpn, verbs::kAttrState, want}}).error,
            0);
  want.state = verbs::QpState::kInit;
  want.access = verbs::kAccessRemoteWrite;
  const uint32_t to_init =
      verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrAccessFlags;
  ASSERT_EQ(gateways.Call(1, 0, {0, worker::ModifyQp{session, qpn, to_init, want}}).error, 0);
  ASSERT_TRUE(ends.local.PostSend(WriteTo(1), {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
  gateways.Ring(0, ends.local);
  gateways.RunWorker(0, 0, gateways.now());
  // More messages than the worker takes at once.
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(gateways.Tell(1, 0, {0, worker::QueryQp{session, qpn}}));
  want.state = verbs::QpState::kRtr;
  want.path_mtu = 5;
  want.path.source = GatewayPair::GidOf(1);
  want.path.destination = GatewayPair::GidOf(0);
  want.dest_qpn = Qpn{ends.local.options().qpn};
  const uint32_t to_rtr = verbs::kAttrState | verbs::kAttrAv | verbs::kAttrPathMtu |
                          verbs::kAttrDestQpn | verbs::kAttrRqPsn | verbs::kAttrMaxDestRdAtomic |
                          verbs::kAttrMinRnrTimer;
  EXPECT_TRUE(gateways.Tell(1, 0, {0, worker::ModifyQp{session, qpn, to_rtr, want}}));
  gateways.RunWorker(1, 0, gateways.now());
  gateways.RunWorker(0, 0, gateways.now());
  const auto done = ends.local.Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint8_t>(verbs::WcStatus::kSuccess));
  EXPECT_EQ(gateways.Count(0, &metrics::WorkerCounters::retransmit_packets), 0u);
}

TEST(Worker, ReadyQueuePair_IsNobodysUntilItIsLinked) {
  GatewayPair gateways({});
  const Qpn qpn{78};
  const verbs::QpShape shape{256, 4, 16};
  ASSERT_EQ(gateways.Call(1, 0, {0, worker::PrepareQp{qpn, shape}}).error, 0);
  EXPECT_EQ(gateways.Call(1, 0, {0, worker::PrepareQp{qpn, shape}}).error, EEXIST);
  EXPECT_TRUE(gateways.Call(1, 0, {0, worker::SnapshotQps{}}).qps.empty());
  const SessionId session{1};
  EXPECT_EQ(gateways.Call(1, 0, {0, worker::QueryQp{session, qpn}}).error, ENOENT);
  EXPECT_EQ(gateways.Call(1, 0, {0, worker::UnlinkQp{session, qpn}}).error, ENOENT);
  // LinkQp adopts it.
  const Ends ends = Connected(gateways);
  ASSERT_EQ(ends.remote.options().qpn, qpn.value);
  EXPECT_EQ(gateways.Call(1, 0, {0, worker::SnapshotQps{}}).qps.size(), 1u);
  ASSERT_TRUE(ends.local.PostSend(WriteTo(1), {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
  gateways.Ring(0, ends.local);
  for (int i = 0; i < 10; ++i) gateways.Step();
  EXPECT_EQ(ends.local.Poll().size(), 1u);
  ASSERT_TRUE(ends.remote.PostSend(WriteTo(0), {{GatewayPair::kBase, 100, GatewayPair::kKey[1]}}));
  gateways.Ring(1, ends.remote);
  for (int i = 0; i < 10; ++i) gateways.Step();
  EXPECT_EQ(ends.remote.Poll().size(), 1u);
}

// A removed queue pair's slot is reused, and no other is affected.
TEST(Worker, ReadyQueuePairs_ThatGo_LeaveTheOthersAlone) {
  GatewayPair gateways({});
  const Ends first = Connected(gateways);
  for (const uint32_t qpn : {90u, 91u, 92u})
    ASSERT_EQ(gateways.Call(1, 0, {0, worker::PrepareQp{Qpn{qpn}, {16, 1, 16}}}).error, 0);
  for (const uint32_t qpn : {91u, 92u})
    ASSERT_EQ(gateways.Call(1, 0, {0, worker::UnlinkQp{SessionId{}, Qpn{qpn}}}).error, 0);
  std::vector<Ends> all = {first};
  for (const uint32_t qpn : {90u, 93u, 94u}) {
    RingOptions ring;
    ring.handle = qpn - 80;
    ring.qpn = qpn + 10;
    RingEnd& local = gateways.AddQp(0, ring);
    ring.qpn = qpn;
    RingEnd& remote = gateways.AddQp(1, ring);
    gateways.Connect(local, remote);
    all.push_back({local, remote});
  }
  for (const Ends& ends : all) {
    ASSERT_TRUE(ends.local.PostSend(WriteTo(1), {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
    gateways.Ring(0, ends.local);
    ASSERT_TRUE(
        ends.remote.PostSend(WriteTo(0), {{GatewayPair::kBase, 100, GatewayPair::kKey[1]}}));
    gateways.Ring(1, ends.remote);
  }
  for (int i = 0; i < 20; ++i) gateways.Step();
  for (const Ends& ends : all) {
    EXPECT_EQ(ends.local.Poll().size(), 1u) << ends.local.options().qpn;
    EXPECT_EQ(ends.remote.Poll().size(), 1u) << ends.remote.options().qpn;
  }
}

TEST(Worker, ReadyQueuePair_PacketsToItAreForNobodyAndItGoes) {
  GatewayPair gateways({});
  const Ends ends = Connected(gateways);
  gateways.Remove(1, ends.remote);
  const Qpn qpn{ends.remote.options().qpn};
  ASSERT_EQ(gateways.Call(1, 0, {0, worker::PrepareQp{qpn, {16, 1, 16}}}).error, 0);
  ExpectWriteUnanswered(gateways, ends.local);
  EXPECT_EQ(gateways.Call(1, 0, {0, worker::UnlinkQp{SessionId{}, qpn}}).error, 0);
  EXPECT_EQ(gateways.Call(1, 0, {0, worker::UnlinkQp{SessionId{}, qpn}}).error, ENOENT);
}

TEST(Worker, ProcessGone_BeforeItsSession_PeerIsAnsweredNothing) {
  GatewayPair gateways({});
  const Ends ends = Connected(gateways);
  gateways.EndProcess(1);
  ExpectWriteUnanswered(gateways, ends.local);
  ASSERT_EQ(gateways.notices.size(), 1u);
  const auto* stopped = std::get_if<worker::SessionStopped>(&gateways.notices[0].body);
  ASSERT_NE(stopped, nullptr);
  EXPECT_STREQ(stopped->reason, "its process is gone");
  EXPECT_EQ(gateways.Count(1, &metrics::WorkerCounters::client_fault_events), 0u);
}

TEST(Worker, ProducerIndex_OutOfRange_EndsTheSessionWithAReason) {
  GatewayPair gateways({});
  RingEnd& a = Connected(gateways).local;
  a.control().sq_producer = 1000000;
  gateways.Ring(0, a);
  for (int i = 0; i < 5; ++i) gateways.Step();
  ASSERT_EQ(gateways.notices.size(), 1u);
  const auto* fault = std::get_if<worker::SessionStopped>(&gateways.notices[0].body);
  ASSERT_NE(fault, nullptr);
  EXPECT_STREQ(fault->reason, "send queue producer index out of range");
}

TEST(Worker, SendQueueDrained_IsToldWhenItIsAndTheQueryShowsTheWay) {
  GatewayPair gateways({});
  RingEnd& a = Connected(gateways).local;
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_WRITE;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  wqe.u.rdma.remote_address = GatewayPair::kBase;
  wqe.u.rdma.rkey = GatewayPair::kKey[1];
  ASSERT_TRUE(a.PostSend(wqe, {{GatewayPair::kBase, 50000, GatewayPair::kKey[0]}}));
  gateways.Ring(0, a);
  gateways.RunWorker(0, 0, gateways.now());
  const SessionId session{1};
  const Qpn qpn{a.options().qpn};
  verbs::QpAttributes want;
  want.state = verbs::QpState::kSqd;
  want.sqd_notify = true;
  const uint32_t mask = verbs::kAttrState | verbs::kAttrEnSqdAsyncNotify;
  ASSERT_EQ(gateways.Call(0, 0, {0, worker::ModifyQp{session, qpn, mask, want}}).error, 0);
  EXPECT_TRUE(gateways.notices.empty());
  const auto query = [&] {
    const worker::ControlReply reply = gateways.Call(0, 0, {0, worker::QueryQp{session, qpn}});
    EXPECT_EQ(reply.qps.size(), 1u);
    return reply.qps.at(0).attributes;
  };
  EXPECT_TRUE(query().sq_draining);
  for (int i = 0; i < 20; ++i) gateways.Step();
  EXPECT_EQ(a.Poll().size(), 1u);
  ASSERT_EQ(gateways.notices.size(), 1u);
  const auto* event = std::get_if<worker::AsyncEventRaised>(&gateways.notices[0].body);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->event, verbs::AsyncEvent::kSqDrained);
  EXPECT_EQ(event->qpn, qpn);
  EXPECT_FALSE(query().sq_draining);
  EXPECT_TRUE(query().sqd_notify);
}

TEST(Worker, DoorbellSummaryLost_LeafBitSet_IsFoundByTheFullScan) {
  GatewayPair gateways({});
  RingEnd& a = Connected(gateways).local;
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_WRITE;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  ASSERT_TRUE(a.PostSend(wqe, {}));
  // A producer that dies between its two stores.
  gateways.SetLeafOnly(0, a);
  std::vector<rocegw_cqe> done;
  for (int i = 0; i < 10000 && done.empty(); ++i) {
    gateways.Step(Nanoseconds(100));
    done = a.Poll();
  }
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, 0);
}

// Clock that steps with each reading, so that work takes time.
int64_t step_clock = 0;
int64_t ReadStepClock() { return step_clock += 100; }

// Packets of two pools in one burst are processed pool by pool; packets of each queue pair stay in
// order.
TEST(Worker, BurstOfTwoPools_EachQueuePairsPacketsInOrder) {
  tenant::Share root{nullptr};
  tenant::Share tenants[2] = {tenant::Share{&root}, tenant::Share{&root}};
  tenant::Share pools[2] = {tenant::Share{&tenants[0]}, tenant::Share{&tenants[1]}};
  GatewayPairOptions options;
  options.clock = &ReadStepClock;
  for (auto& shares : options.shares) shares = {&pools[0], &pools[1]};
  GatewayPair gateways(options);
  RingEnd* from[4];
  for (uint32_t i = 0; i < 4; ++i) {
    RingOptions ring;
    ring.session = 1 + i % 2;
    ring.handle = 1 + i;
    ring.qpn = 70 + 2 * i;
    from[i] = &gateways.AddQp(1, ring);
    ++ring.qpn;
    gateways.Connect(gateways.AddQp(0, ring), *from[i]);
  }
  uint32_t done = 0;
  uint32_t posted = 0;
  for (int round = 0; round < 200; ++round) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t session = 1 + i % 2;
      rocegw_send_wqe wqe = WriteTo(0);
      wqe.u.rdma.rkey = GatewayPair::KeyOf(0, session).value;
      const rocegw_sge sge{GatewayPair::kBase, 100, GatewayPair::KeyOf(1, session).value};
      for (int k = 0; k < 3 && from[i]->PostSend(wqe, {sge}); ++k) ++posted;
      gateways.Ring(1, *from[i]);
    }
    gateways.Step();
    for (RingEnd* end : from) {
      for (const rocegw_cqe& cqe : end->Poll()) {
        EXPECT_EQ(cqe.status, 0);
        ++done;
      }
    }
  }
  for (int i = 0; i < 20; ++i) gateways.Step();
  for (RingEnd* end : from) done += static_cast<uint32_t>(end->Poll().size());
  EXPECT_GT(posted, 1000u);
  EXPECT_EQ(done, posted);
  EXPECT_EQ(gateways.Count(1, &metrics::WorkerCounters::retransmit_packets), 0u);
}

}  // namespace
}  // namespace rocegw::testing
