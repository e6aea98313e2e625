// SPDX-License-Identifier: Apache-2.0
// Queue pair as a whole: flushing, reset and reuse, drained send queues, slots, completion queues,
// and clients that break the rules of the rings.
#include <gtest/gtest.h>

#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::queue_pair {
namespace {

using verbs::QpState;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kHostPsn;
constexpr uint64_t kSource = 0x1000;
constexpr uint64_t kInto = 0x8000;

std::vector<uint8_t> StatusesOf(const std::vector<rocegw_cqe>& cqes) {
  std::vector<uint8_t> out;
  for (const rocegw_cqe& cqe : cqes) out.push_back(cqe.status);
  return out;
}
using Statuses = std::vector<uint8_t>;

TEST(QueuePairFlush, ModifyToError_EverythingPostedAndPostedLater) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.PostSend(kSource, 4, 0);
  peer.Out();
  peer.PostSend(kSource, 4);
  peer.PostReceive(kInto, 4);
  ASSERT_EQ(peer.host().ToState(QpState::kError), 0);
  auto cqes = peer.Poll();
  ASSERT_EQ(cqes.size(), 4u);
  uint64_t send = 100;
  for (const rocegw_cqe& cqe : cqes) {
    EXPECT_EQ(cqe.status, 5);
    if ((cqe.flags & ROCEGW_CQE_RECEIVE) == 0) {
      EXPECT_EQ(cqe.wr_id, send++);
    }
  }
  EXPECT_EQ(send, 103u);
  peer.PostSend(kSource, 4);
  peer.PostReceive(kInto, 4);
  peer.host().qp().OnDoorbell(peer.host());
  EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{5, 5}));
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.host().counters().qp_error_events.Read(), 0u) << "the client wanted it";
}

TEST(QueuePairFlush, ErrorStateIsPublished_ReceivesMustRing) {
  ScriptedPeer peer;
  const rocegw_qp_status* status = peer.host().rings().Qp().status;
  EXPECT_EQ(status->state, 3u);
  EXPECT_EQ(status->rq_starved, 0u);
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn, 0x62));
  EXPECT_EQ(status->state, 6u);
  EXPECT_EQ(status->rq_starved, 1u);
  ASSERT_EQ(peer.host().ToState(QpState::kReset), 0);
  EXPECT_EQ(status->state, 0u);
  EXPECT_EQ(status->rq_starved, 0u);
}

TEST(QueuePairFlush, MemoryStillRead_CompletionsWaitForIt) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 64);
  peer.host().Pump(peer.now());
  ASSERT_EQ(peer.host().queued().size(), 1u);
  ASSERT_EQ(peer.host().ToState(QpState::kError), 0);
  EXPECT_TRUE(peer.Poll().empty()) << "the program may use its buffer again after the completion";
  peer.host().Settle();
  EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{5}));
}

TEST(QueuePairFlush, ReadBeingPlaced_CompletionWaitsAndIsWell) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 8);
  peer.PostRead(kInto, 8);
  peer.Out();
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(8));
  ASSERT_EQ(peer.host().ToState(QpState::kError), 0);
  EXPECT_TRUE(peer.Poll().empty());
  peer.host().Settle();
  EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{0, 5}));
}

TEST(QueuePairFlush, RetriesSpentWhileMemoryIsRead_StatusAfterIt) {
  ScriptedPeer::Options options;
  options.limits.retry_count = 0;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.PostSend(kSource, 64);
  peer.host().Pump(peer.now());
  peer.Deliver(peer.Ack(kPsn, 0x60));
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  EXPECT_TRUE(peer.Poll().empty());
  peer.host().Settle();
  EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{12, 5}));
}

TEST(QueuePairFlush, MalformedWhenItIsFlushed_JustFlushed) {
  ScriptedPeer peer;
  ASSERT_EQ(peer.host().ToState(QpState::kError), 0);
  rocegw_send_wqe wqe{};
  wqe.opcode = 99;
  wqe.wr_id = 5;
  peer.host().PostSend(wqe, {{kSource, 4}});
  peer.Out();
  const rocegw_cqe cqe = peer.PollOne();
  EXPECT_EQ(cqe.status, 5);
  EXPECT_EQ(cqe.wr_id, 5u);
}

TEST(QueuePairFlush, HalfReceivedMessage_FlushedOnce) {
  ScriptedPeer peer;
  peer.PostReceive(kInto, 1024);
  peer.Deliver(peer.To(Opcode::kRcSendFirst, ScriptedPeer::kPeerPsn), ScriptedPeer::Bytes(256));
  ASSERT_EQ(peer.host().ToState(QpState::kError), 0);
  EXPECT_TRUE(peer.Poll().empty()) << "a part of it is being placed";
  peer.Out();
  EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{5}));
}

// Client that posts whenever a slot is released, as fast as the worker flushes.
class RacingHost : public QpHost {
 public:
  using QpHost::QpHost;
  TimePoint now() const override {
    const verbs::QpConfig config = rings_->Qp();
    if (++looked < 10000) {
      config.control->sq_producer = config.status->sq_released + config.sq_entries;
      config.control->rq_producer = config.status->rq_released + config.rq_entries;
    }
    return QpHost::now();
  }
  void Race() { rings_ = &rings(); }
  mutable int looked = 0;

 private:
  RingEnd* rings_ = nullptr;
};

TEST(QueuePairFlush, ClientThatKeepsPosting_OneCallEnds) {
  QpHost::Options options;
  options.sq_entries = options.rq_entries = 8;
  RacingHost host(options);
  host.Race();
  ASSERT_EQ(host.ToInit(QpHost::DefaultLimits()), 0);
  host.rings().control().sq_producer = 8;
  ASSERT_EQ(host.ToState(QpState::kError), 0);
  EXPECT_LE(host.looked, 64) << "the worker has others to serve";
  const int before = host.looked;
  host.qp().OnDoorbell(host);
  EXPECT_GT(host.looked, before) << "and the rest comes with its own doorbell";
}

TEST(QueuePairReset, DiscardsSilently_AndStartsAgain) {
  ScriptedPeer peer;
  peer.PostReceive(kInto, 1024);
  peer.PostSend(kSource, 4);
  peer.PostRead(kInto, 300);
  peer.Out();
  peer.PostSend(kSource, 4);
  peer.Deliver(peer.To(Opcode::kRcSendFirst, ScriptedPeer::kPeerPsn, true),
               ScriptedPeer::Bytes(256));
  ASSERT_EQ(peer.host().ToState(QpState::kReset), 0);
  EXPECT_TRUE(peer.Out().empty()) << "what was promised is forgotten";
  EXPECT_TRUE(peer.Poll().empty());
  EXPECT_EQ(peer.host().qp().outstanding(), 0u);
  EXPECT_EQ(peer.host().qp().deadline(), kNever);
  const rocegw_qp_status* status = peer.host().rings().Qp().status;
  EXPECT_EQ(status->sq_released, 3u);
  EXPECT_EQ(status->rq_released, 1u);

  ASSERT_EQ(peer.host().ToInit(peer.attributes()), 0);
  ASSERT_EQ(peer.host().ToRtr(peer.attributes()), 0);
  ASSERT_EQ(peer.host().ToRts(peer.attributes()), 0);
  peer.PostReceive(kInto, 64);
  peer.PostSend(kSource, 4);
  EXPECT_EQ(peer.OutOne().psn(), kPsn);
  peer.Deliver(peer.Ack(kPsn));
  peer.Deliver(peer.To(Opcode::kRcSendOnly, ScriptedPeer::kPeerPsn), ScriptedPeer::Bytes(8));
  peer.Out();
  EXPECT_EQ(peer.Poll().size(), 2u);
}

TEST(QueuePairReset, FromError_ClearsTheFailure) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn, 0x62));
  peer.Poll();
  ASSERT_EQ(peer.host().ToState(QpState::kReset), 0);
  ASSERT_EQ(peer.host().ToInit(peer.attributes()), 0);
  ASSERT_EQ(peer.host().ToRtr(peer.attributes()), 0);
  ASSERT_EQ(peer.host().ToRts(peer.attributes()), 0);
  peer.PostSend(kSource, 4);
  peer.OutOne();
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_EQ(peer.PollOne().status, 0);
  // A later failure is handled as well.
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn + 1, 0x61));
  EXPECT_EQ(peer.PollOne().status, 9);
}

TEST(QueuePairReset, WhileMemoryIsRead_LateResultsMeanNothing) {
  ScriptedPeer peer;
  peer.host().Poison(kSource, 64);
  peer.PostSend(kSource, 64);
  peer.host().Pump(peer.now());
  ASSERT_EQ(peer.host().ToState(QpState::kReset), 0);
  peer.host().Settle();
  EXPECT_EQ(peer.host().context().state(), QpState::kReset);
  EXPECT_TRUE(peer.Poll().empty());
}

TEST(QueuePairReset, DuringRnrWait_NothingIsLeftOfIt) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn, 0x20));
  ASSERT_EQ(peer.host().ToState(QpState::kReset), 0);
  ASSERT_EQ(peer.host().ToInit(peer.attributes()), 0);
  ASSERT_EQ(peer.host().ToRtr(peer.attributes()), 0);
  ASSERT_EQ(peer.host().ToRts(peer.attributes()), 0);
  peer.PostSend(kSource, 4);
  EXPECT_EQ(peer.Out().size(), 1u);
}

TEST(QueuePairSqd, FinishesWhatItBegan_TakesNothingNew) {
  ScriptedPeer::Options options;
  options.host.cc.window_bytes = 512;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 1024);
  EXPECT_EQ(peer.Out().size(), 2u);
  peer.PostSend(kSource, 4);
  verbs::QpAttributes want;
  want.state = QpState::kSqd;
  want.sqd_notify = true;
  ASSERT_EQ(peer.host().Modify(verbs::kAttrState | verbs::kAttrEnSqdAsyncNotify, want), 0);
  EXPECT_TRUE(peer.host().events.empty());
  EXPECT_TRUE(peer.host().qp().draining());
  EXPECT_TRUE(peer.host().context().attributes.sqd_notify);
  peer.Deliver(peer.Ack(kPsn + 1));
  EXPECT_EQ(peer.Out().size(), 2u);
  EXPECT_TRUE(peer.host().events.empty());
  peer.Deliver(peer.Ack(kPsn + 3));
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.PollOne().status, 0);
  ASSERT_EQ(peer.host().events.size(), 1u);
  EXPECT_EQ(peer.host().events[0], verbs::AsyncEvent::kSqDrained);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.host().events.size(), 1u) << "told once";
  EXPECT_FALSE(peer.host().qp().draining());
  // SQD to RTS resumes sending.
  want.state = QpState::kRts;
  ASSERT_EQ(peer.host().Modify(verbs::kAttrState, want), 0);
  EXPECT_FALSE(peer.host().context().attributes.sqd_notify);
  EXPECT_EQ(peer.OutOne().psn(), kPsn + 4);
}

TEST(QueuePairSqd, MalformedRequestInTheRing_NotLookedAt) {
  ScriptedPeer peer;
  ASSERT_EQ(peer.host().ToState(QpState::kSqd), 0);
  rocegw_send_wqe wqe{};
  wqe.opcode = 99;
  peer.host().PostSend(wqe, {{kSource, 4}});
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.host().context().state(), QpState::kSqd);
}

TEST(QueuePairSqd, NothingBegun_DrainedAtOnce) {
  ScriptedPeer peer;
  verbs::QpAttributes want;
  want.state = QpState::kSqd;
  want.sqd_notify = true;
  ASSERT_EQ(peer.host().Modify(verbs::kAttrState | verbs::kAttrEnSqdAsyncNotify, want), 0);
  EXPECT_EQ(peer.host().events.size(), 1u);
  // Without the request for a notification, none is raised.
  ScriptedPeer quiet;
  ASSERT_EQ(quiet.host().ToState(QpState::kSqd), 0);
  EXPECT_TRUE(quiet.host().events.empty());
}

TEST(QueuePairModify, Refused_NothingChanges) {
  ScriptedPeer peer;
  verbs::QpAttributes want = peer.attributes();
  want.state = QpState::kInit;
  EXPECT_EQ(peer.host().Modify(verbs::kAttrState, want), EINVAL);
  want.state = QpState::kRts;
  want.current_state = QpState::kSqd;
  EXPECT_EQ(peer.host().Modify(verbs::kAttrState | verbs::kAttrCurState, want), EINVAL);
  want.access = 0;
  EXPECT_EQ(peer.host().Modify(verbs::kAttrAccessFlags | verbs::kAttrTimeout, want), EINVAL);
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  EXPECT_EQ(peer.host().context().attributes.access, peer.attributes().access);
}

TEST(QueuePairModify, AttributesThatTheMaskDoesNotName_StayAsTheyAre) {
  ScriptedPeer peer;
  ASSERT_EQ(peer.host().ToState(QpState::kSqd), 0);
  const verbs::QpAttributes before = peer.host().context().attributes;
  verbs::QpAttributes want = before;
  want.access = before.access ^ verbs::kAccessRemoteWrite;
  want.pkey_index = before.pkey_index + 1;
  want.port = before.port + 1;
  want.qkey = before.qkey + 1;
  want.path.source_port = before.path.source_port ^ 1;
  want.sgid_index = before.sgid_index + 1;
  want.flow_label = before.flow_label + 1;
  want.service_level = before.service_level + 1;
  want.path_mtu = before.path_mtu + 1;
  want.timeout = before.timeout + 1;
  want.retry_count = before.retry_count - 1;
  want.rnr_retry = before.rnr_retry ^ 1;
  want.rq_psn = before.rq_psn + 1;
  want.sq_psn = before.sq_psn + 1;
  want.max_rd_atomic = before.max_rd_atomic + 1;
  want.max_dest_rd_atomic = before.max_dest_rd_atomic + 1;
  want.dest_qpn = Qpn{before.dest_qpn.value + 1};
  want.min_rnr_timer = before.min_rnr_timer + 1;
  ASSERT_EQ(peer.host().Modify(verbs::kAttrMinRnrTimer, want), 0);
  const verbs::QpAttributes& now = peer.host().context().attributes;
  EXPECT_EQ(now.min_rnr_timer, want.min_rnr_timer);
  EXPECT_EQ(now.state, QpState::kSqd);
  EXPECT_EQ(now.access, before.access);
  EXPECT_EQ(now.pkey_index, before.pkey_index);
  EXPECT_EQ(now.port, before.port);
  EXPECT_EQ(now.qkey, before.qkey);
  EXPECT_EQ(now.path.source_port, before.path.source_port);
  EXPECT_EQ(now.sgid_index, before.sgid_index);
  EXPECT_EQ(now.flow_label, before.flow_label);
  EXPECT_EQ(now.service_level, before.service_level);
  EXPECT_EQ(now.path_mtu, before.path_mtu);
  EXPECT_EQ(now.timeout, before.timeout);
  EXPECT_EQ(now.retry_count, before.retry_count);
  EXPECT_EQ(now.rnr_retry, before.rnr_retry);
  EXPECT_EQ(now.rq_psn, before.rq_psn);
  EXPECT_EQ(now.sq_psn, before.sq_psn);
  EXPECT_EQ(now.max_rd_atomic, before.max_rd_atomic);
  EXPECT_EQ(now.max_dest_rd_atomic, before.max_dest_rd_atomic);
  EXPECT_EQ(now.dest_qpn, before.dest_qpn);
}

TEST(QueuePairModify, AccessTakenAwayInRts_NextRequestIsRefused) {
  ScriptedPeer peer;
  verbs::QpAttributes want = peer.attributes();
  want.access = verbs::kAccessRemoteRead;
  ASSERT_EQ(peer.host().Modify(verbs::kAttrAccessFlags, want), 0);
  EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnly, ScriptedPeer::kPeerPsn, kInto, 4),
                         ScriptedPeer::Bytes(4)),
            metrics::DropReason::k_invalid_request);
}

TEST(QueuePairRings, FullQueueOverAndOver) {
  ScriptedPeer::Options options;
  options.host.sq_entries = 4;
  options.host.rq_entries = 4;
  ScriptedPeer peer(options);
  uint32_t psn = kPsn;
  uint32_t peer_psn = ScriptedPeer::kPeerPsn;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 4; ++i) {
      peer.PostSend(kSource, 4, i == 3 ? ROCEGW_WQE_SIGNALED : 0);
      peer.PostReceive(kInto, 64);
    }
    peer.Out();
    for (int i = 0; i < 4; ++i) {
      peer.Deliver(peer.To(Opcode::kRcSendOnly, peer_psn++), ScriptedPeer::Bytes(16));
    }
    psn += 4;
    peer.Deliver(peer.Ack(psn - 1));
    peer.Out();
    ASSERT_EQ(peer.Poll().size(), 5u);
  }
  EXPECT_EQ(peer.host().context().sends_completed(), 200u);
  EXPECT_EQ(peer.host().context().receives_completed(), 200u);
}

TEST(QueuePairRings, SignalAll_CompletesUnsignaledToo) {
  ScriptedPeer::Options options;
  options.host.signal_all = true;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 4, 0);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_EQ(peer.PollOne().status, 0);
}

TEST(QueuePairRings, ImpossibleSendIndex_ClientFault) {
  for (uint32_t index : {65u, 0x80000000u, 0xFFFFFFFFu}) {
    ScriptedPeer peer;
    peer.host().rings().control().sq_producer = index;
    EXPECT_TRUE(peer.Out().empty());
    EXPECT_FALSE(peer.host().faults.empty());
  }
}

TEST(QueuePairRings, IndexTurnedBack_ClientFaultAndNothingIsSentTwice) {
  ScriptedPeer peer;
  for (int i = 0; i < 5; ++i) peer.PostSend(kSource, 4);
  EXPECT_EQ(peer.Out().size(), 5u);
  peer.host().rings().control().sq_producer = 3;
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_FALSE(peer.host().faults.empty());
  EXPECT_EQ(peer.host().qp().outstanding(), 5u);
}

TEST(QueuePairRings, ImpossibleIndexAtReset_FaultButStateIsClean) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.host().rings().control().sq_producer = 1000;
  ASSERT_EQ(peer.host().ToState(QpState::kReset), 0);
  EXPECT_EQ(peer.host().faults.size(), 1u);
  EXPECT_EQ(peer.host().qp().outstanding(), 0u);
}

TEST(QueuePairRings, SendIndexAcrossItsWrap) {
  ScriptedPeer peer;
  rocegw_qp_control& control = peer.host().rings().control();
  control.sq_producer = 0xFFFFFFE0;
  peer.host().context().send_ring =
      shm::RingPlace(peer.host().rings().Qp().sq, 64, rocegw_sq_stride(4), 0xFFFFFFE0);
  ASSERT_EQ(peer.host().ToState(QpState::kReset), 0);
  ASSERT_EQ(peer.host().ToInit(peer.attributes()), 0);
  ASSERT_EQ(peer.host().ToRtr(peer.attributes()), 0);
  ASSERT_EQ(peer.host().ToRts(peer.attributes()), 0);
  for (uint32_t i = 0; i < 80; ++i) {
    peer.PostRead(kInto, 300);
    EXPECT_EQ(peer.Out().size(), 1u);
    const uint32_t psn = kPsn + 2 * i;
    peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseFirst, psn), ScriptedPeer::Bytes(256));
    peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseLast, psn + 1), ScriptedPeer::Bytes(44));
    peer.Out();
    const rocegw_cqe cqe = peer.PollOne();
    ASSERT_EQ(cqe.status, 0);
    ASSERT_EQ(cqe.ring_slot, 0xFFFFFFE0 + i);
  }
}

TEST(QueuePairCq, Overrun_QpToErrorAndCqEventOnce) {
  ScriptedPeer::Options options;
  options.host.cq_entries = 2;
  ScriptedPeer peer(options);
  for (int i = 0; i < 5; ++i) peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn + 3));
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  ASSERT_EQ(peer.host().events.size(), 1u);
  EXPECT_EQ(peer.host().events[0], verbs::AsyncEvent::kCqError);
  EXPECT_EQ(peer.Poll().size(), 2u);
  EXPECT_EQ(peer.host().context().sq().released(), 5u);
}

}  // namespace
}  // namespace rocegw::testing::queue_pair
