// SPDX-License-Identifier: Apache-2.0
// Hand-over of a whole worker (Worker::HandOver). The state is read by a worker of another pair of
// gateways, whose objects have the same names and other memory. tests/sim/hand_over_test.cc
// replaces workers under load.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "gateway/worker/hand_over/counters_state.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

using hand_over::StateStream;

RingOptions OptionsOf(uint32_t qpn, uint32_t handle, int event_fd = -1) {
  RingOptions options;
  options.qpn = qpn;
  options.handle = handle;
  options.event_fd = event_fd;
  return options;
}

std::vector<uint8_t> StateOf(GatewayPair& pair) {
  while (!pair.worker(0, 0).Rest(pair.now())) {
  }
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  StateStream out(bytes, pair.now(), versions);
  pair.worker(0, 0).HandOver(out);
  EXPECT_TRUE(out.ok()) << out.failure();
  return bytes;
}

// Returns the reason for which the worker refuses the state; "": the state was read.
std::string Read(GatewayPair& pair, const std::vector<uint8_t>& state) {
  StateStream in(state, pair.now());
  pair.worker(0, 0).HandOver(in);
  if (!in.ok()) return in.failure();
  return in.at_end() ? "" : "state is longer than what was read";
}

rocegw_send_wqe Send() {
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_SEND;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  return wqe;
}

TEST(WorkerHandOver, AWorkerThatMayNotAct_AppliesMessages_AndTakesNoDoorbell) {
  GatewayPair pair({});
  RingEnd& own = pair.AddQp(0, OptionsOf(0x100, 1));
  RingEnd& peer = pair.AddQp(1, OptionsOf(0x200, 1));
  pair.Connect(own, peer);
  ASSERT_TRUE(own.PostSend(Send(), {}));
  pair.Ring(0, own);
  ASSERT_TRUE(pair.Tell(0, 0, {0, worker::SnapshotSrqs{}}));
  EXPECT_TRUE(pair.worker(0, 0).Prepare(pair.now()));
  EXPECT_FALSE(pair.worker(0, 0).Prepare(pair.now()));
  EXPECT_NE(pair.page(0, 0)->summary, 0u);
  EXPECT_EQ(pair.Count(0, &metrics::WorkerCounters::doorbells_events), 0u);
}

TEST(WorkerHandOver, AWorkerThatRests_TakesNoDoorbell) {
  GatewayPair pair({});
  RingEnd& own = pair.AddQp(0, OptionsOf(0x100, 1));
  RingEnd& peer = pair.AddQp(1, OptionsOf(0x200, 1));
  pair.Connect(own, peer);
  ASSERT_TRUE(own.PostSend(Send(), {}));
  pair.Ring(0, own);
  EXPECT_TRUE(pair.worker(0, 0).Rest(pair.now()));
  EXPECT_NE(pair.page(0, 0)->summary, 0u);
  EXPECT_EQ(pair.Count(0, &metrics::WorkerCounters::tx_packets), 0u);
}

// A message that the worker has not applied is one that the successor's control thread would not
// know of.
TEST(WorkerHandOver, AWorkerWithMessagesOfTheControlThread_DoesNotRest) {
  GatewayPair pair({});
  pair.AddQp(0, OptionsOf(0x100, 1));
  ASSERT_TRUE(pair.Tell(0, 0, {0, worker::SnapshotSrqs{}}));
  EXPECT_FALSE(pair.worker(0, 0).Rest(pair.now()));
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  StateStream out(bytes, pair.now(), versions);
  pair.worker(0, 0).HandOver(out);
  EXPECT_STREQ(out.failure(), "the worker does not rest");
}

TEST(WorkerHandOver, Counters_GoOn_AndBeginAnewBehindAnOlderGateway) {
  GatewayPair old({});
  RingEnd& own = old.AddQp(0, OptionsOf(0x100, 1));
  RingEnd& peer = old.AddQp(1, OptionsOf(0x200, 1));
  old.Connect(own, peer);
  ASSERT_TRUE(own.PostSend(Send(), {}));
  old.Ring(0, own);
  for (int i = 0; i < 20; ++i) old.Step();
  const uint64_t sent = old.Count(0, &metrics::WorkerCounters::tx_packets);
  ASSERT_GT(sent, 0u);
  const std::vector<uint8_t> state = StateOf(old);
  GatewayPair fresh({});
  fresh.AddQp(0, OptionsOf(0x100, 1));
  ASSERT_EQ(Read(fresh, state), "");
  EXPECT_EQ(fresh.Count(0, &metrics::WorkerCounters::tx_packets), sent);

  hand_over::StateVersions older;
  older.Set(hand_over::StateKind::kWorker, 1);
  std::vector<uint8_t> bytes;
  StateStream out(bytes, old.now(), older);
  old.worker(0, 0).HandOver(out);
  ASSERT_TRUE(out.ok()) << out.failure();
  GatewayPair behind({});
  behind.AddQp(0, OptionsOf(0x100, 1));
  ASSERT_EQ(Read(behind, bytes), "");
  EXPECT_EQ(behind.Count(0, &metrics::WorkerCounters::tx_packets), 0u);
}

TEST(WorkerHandOver, EachCounterAndDropReason_IsAddedByItsName) {
  metrics::WorkerCounters old;
  metrics::WorkerCounters fresh;
  old.cqe_entries.Add(uint64_t{1} << 40);
  old.rx_bytes.Add(7);
  // The first one stands for no drop and is never counted.
  for (size_t i = 1; i < metrics::kDropReasonCount; ++i) old.drops[i].Add(i + 1);
  fresh.cqe_entries.Add(5);
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  StateStream out(bytes, {}, versions);
  worker::HandOver(out, old);
  ASSERT_TRUE(out.ok());
  StateStream in(bytes, {});
  worker::HandOver(in, fresh);
  ASSERT_TRUE(in.ok() && in.at_end()) << in.failure();
  EXPECT_EQ(fresh.cqe_entries.Read(), (uint64_t{1} << 40) + 5);
  EXPECT_EQ(fresh.rx_packets.Read(), 0u);
  EXPECT_EQ(fresh.rx_bytes.Read(), 7u);
  for (size_t i = 1; i < metrics::kDropReasonCount; ++i) EXPECT_EQ(fresh.drops[i].Read(), i + 1);
}

TEST(WorkerHandOver, OtherObjectsThanTheState_AreRefused) {
  GatewayPair old({});
  old.AddQp(0, OptionsOf(0x100, 1));
  old.AddQp(0, OptionsOf(0x101, 2));
  const std::vector<uint8_t> state = StateOf(old);
  {
    GatewayPair fewer({});
    fewer.AddQp(0, OptionsOf(0x100, 1));
    EXPECT_EQ(Read(fewer, state), "queue pair is missing");
  }
  {
    GatewayPair more({});
    for (uint32_t i = 0; i < 3; ++i) more.AddQp(0, OptionsOf(0x100 + i, 1 + i));
    EXPECT_EQ(Read(more, state), "queue pair has no state");
  }
  {
    GatewayPair other({});
    other.AddQp(0, OptionsOf(0x100, 1));
    other.AddQp(0, OptionsOf(0x102, 2));
    EXPECT_EQ(Read(other, state), "queue pair is missing");
  }
  GatewayPair same({});
  same.AddQp(0, OptionsOf(0x101, 2));
  same.AddQp(0, OptionsOf(0x100, 1));
  EXPECT_EQ(Read(same, state), "");
}

// The slots of destroyed queue pairs keep their generations: a late frame of theirs finds nothing.
TEST(WorkerHandOver, SlotsAreThoseOfTheOtherGateway) {
  GatewayPair old({});
  RingEnd& first = old.AddQp(0, OptionsOf(0x100, 1));
  old.AddQp(0, OptionsOf(0x101, 2));
  old.Remove(0, first);
  old.AddQp(0, OptionsOf(0x102, 3));
  const std::vector<uint8_t> state = StateOf(old);
  GatewayPair fresh({});
  fresh.AddQp(0, OptionsOf(0x101, 2));
  fresh.AddQp(0, OptionsOf(0x102, 3));
  ASSERT_EQ(Read(fresh, state), "");
  std::vector<std::pair<uint32_t, SlotHandle>> slots;
  fresh.worker(0, 0).ForEachQueuePair([&](const std::unique_ptr<transport::QueuePair>& qp) {
    slots.emplace_back(qp->context().config.qpn.value, qp->context().handle);
  });
  const std::vector<std::pair<uint32_t, SlotHandle>> expected = {{0x102, {0, 1}}, {0x101, {1, 0}}};
  EXPECT_EQ(slots, expected);
}

// The moderated event of a completion that the other gateway wrote is sent when it is due.
TEST(WorkerHandOver, ADeferredCompletionEvent_IsSentByTheSuccessor) {
  int channel[2][2];
  for (auto& pair : channel)
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
  std::vector<uint8_t> state;
  verbs::CqModeration moderation[2];
  std::vector<uint8_t> counts;
  const hand_over::StateVersions versions;
  for (int gateway = 0; gateway < 2; ++gateway) {
    GatewayPair pair({});
    RingEnd& own = pair.AddQp(0, OptionsOf(0x100, 1, channel[gateway][0]));
    RingEnd& peer = pair.AddQp(1, OptionsOf(0x200, 1));
    const worker::ModerateCq moderate{SessionId{1}, 1, &moderation[gateway], 3, Microseconds(500)};
    ASSERT_EQ(pair.Call(0, 0, {0, moderate}).error, 0);
    own.Arm(ROCEGW_CQ_ARM_ANY);
    rocegw_completion_event event{};
    if (gateway == 0) {
      pair.Connect(own, peer);
      ASSERT_TRUE(peer.PostReceive(1, {}));
      ASSERT_TRUE(own.PostSend(Send(), {}));
      pair.Ring(0, own);
      for (int i = 0; i < 20; ++i) pair.Step();
      ASSERT_EQ(own.Poll().size(), 1u);
      state = StateOf(pair);
      StateStream out(counts, pair.now(), versions);
      moderation[0].HandOver(out);
      EXPECT_LT(recv(channel[0][1], &event, sizeof event, 0), 0);
      continue;
    }
    StateStream in(counts, pair.now());
    moderation[1].HandOver(in);
    ASSERT_EQ(Read(pair, state), "");
    EXPECT_NE(pair.worker(0, 0).NextDeadline(), kNever);
    for (int i = 0; i < 60; ++i) pair.Step();
    EXPECT_EQ(recv(channel[1][1], &event, sizeof event, 0), static_cast<ssize_t>(sizeof event));
  }
  for (auto& pair : channel)
    for (const int fd : pair) close(fd);
}

}  // namespace
}  // namespace rocegw::testing
