// SPDX-License-Identifier: Apache-2.0
// Requirements on a transport that places in any order and completes in verbs order, one test row
// each: ordering, data path, wire format, whole system, and loss in messages of many packets. The
// rows correspond to the functional tests of OpenURMA (6.4); docs/develop/simulator.md has the
// table. Time is virtual and faults are single, so each row examines the frames that it is about.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "tests/sim/two_gateways.h"

namespace rocegw::sim {
namespace {

using wire::FrameKind;

constexpr uint32_t kMtu = 1024;
constexpr uint64_t kTarget = 4 << 20;

bool Is(const SeenFrame& seen, LinkEvent event, FrameKind kind) {
  return seen.event == event && seen.frame.kind == kind;
}

size_t CountOf(const std::vector<SeenFrame>& frames, LinkEvent event, FrameKind kind) {
  return static_cast<size_t>(std::count_if(
      frames.begin(), frames.end(), [&](const SeenFrame& seen) { return Is(seen, event, kind); }));
}

// Returns true if that frame of that message has arrived.
bool Arrived(const std::vector<SeenFrame>& frames, uint32_t message, uint32_t offset) {
  return std::any_of(frames.begin(), frames.end(), [=](const SeenFrame& seen) {
    return seen.event == LinkEvent::kArrives && seen.frame.message == message &&
           seen.frame.offset == offset;
  });
}

void ExpectAllGood(const std::vector<rocegw_cqe>& cqes) {
  for (size_t i = 0; i < cqes.size(); ++i) {
    EXPECT_EQ(cqes[i].status, 0) << "completion " << i;
    EXPECT_EQ(cqes[i].wr_id, i);
  }
}

// --- Ordering ---

// The number of READs in flight never exceeds the agreed limit, and the rest follow without help.
void InitiatorGating() {
  TwoGateways net;
  const auto [a, b] = net.Connect({.path_mtu = 3, .rd_atomic = 2, .channel = true});
  const auto& asked = net.Record(0);
  const auto& answers = net.Record(1);
  net.Fill(1, 0, 64 * kMtu, 5);
  for (uint64_t i = 0; i < 8; ++i)
    net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_READ, .local = i * 8192, .length = 8192, .id = i});
  ExpectAllGood(net.Await(a, 8));
  for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(net.Holds(0, i * 8192, 8192, 5));
  for (const SeenFrame& request : asked) {
    if (!Is(request, LinkEvent::kLeaves, FrameKind::kReadRequest)) continue;
    const auto answered = std::count_if(answers.begin(), answers.end(), [&](const SeenFrame& seen) {
      return Is(seen, LinkEvent::kArrives, FrameKind::kReadResponse) &&
             seen.frame.has(wire::kFrameLast) && seen.at <= request.at;
    });
    EXPECT_LE(request.frame.message, static_cast<uint32_t>(answered) + 1);
  }
}

// Messages behind a hole take no effect until the hole is filled: an atomic waits for the WRITE
// before it.
void TargetGating() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  net.Fill(0, 0, 3 * kMtu, 1);
  net.SetWord(1, kTarget, 40);
  const auto& frames = net.Record(0);
  net.Hurt(0, FaultKind::kLose, 0, [](const wire::ChannelFrame& frame) {
    return frame.kind == FrameKind::kWrite && frame.offset == kMtu;
  });
  net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 3 * kMtu, .remote = 0, .id = 0});
  net.Post(0, a,
           {.opcode = ROCEGW_WR_ATOMIC_FETCH_AND_ADD,
            .local = 1 << 20,
            .length = 8,
            .remote = kTarget,
            .compare_add = 2,
            .id = 1});
  while (!Arrived(frames, 0, kMtu)) {
    EXPECT_EQ(net.Word(1, kTarget), 40u);
    ASSERT_TRUE(net.network.RunOne());
  }
  EXPECT_TRUE(Arrived(frames, 1, 0));
  ExpectAllGood(net.Await(a, 2));
  EXPECT_EQ(net.Word(1, kTarget), 42u);
  EXPECT_EQ(net.Word(0, 1 << 20), 40u);
}

// A fenced request leaves only after the earlier READs have their data.
void Fence() {
  for (const bool fenced : {false, true}) {
    TwoGateways net;
    const auto [a, b] = net.Connect();
    const auto& requests = net.Record(0);
    const auto& answers = net.Record(1);
    net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_READ, .length = 100 * kMtu, .id = 0});
    net.Post(0, a,
             {.opcode = ROCEGW_WR_RDMA_WRITE,
              .length = 8,
              .remote = kTarget,
              .flags = static_cast<uint8_t>(fenced ? ROCEGW_WQE_FENCE : 0),
              .id = 1});
    ExpectAllGood(net.Await(a, 2));
    TimePoint data, write;
    for (const SeenFrame& seen : answers)
      if (Is(seen, LinkEvent::kArrives, FrameKind::kReadResponse)) data = seen.at;
    for (const SeenFrame& seen : requests)
      if (Is(seen, LinkEvent::kLeaves, FrameKind::kWrite)) write = seen.at;
    EXPECT_EQ(write >= data, fenced);
  }
}

// Requests complete in posting order, whatever the order of arrival.
void IssueAndArrivalOrder() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  for (uint64_t i = 0; i < 8; ++i) net.PostReceive(1, b, i, kTarget + i * kMtu, kMtu);
  const auto& frames = net.Record(0);
  net.Hurt(0, FaultKind::kDelay, 0,
           [](const wire::ChannelFrame& frame) { return frame.message == 0; });
  for (uint64_t i = 0; i < 8; ++i) {
    net.Fill(0, i * kMtu, kMtu, i);
    net.Post(0, a, {.local = i * kMtu, .length = kMtu, .id = i});
  }
  ExpectAllGood(net.Await(b, 8));
  ExpectAllGood(net.Await(a, 8));
  std::vector<uint32_t> arrived;
  for (const SeenFrame& seen : frames)
    if (Is(seen, LinkEvent::kArrives, FrameKind::kSend)) arrived.push_back(seen.frame.message);
  EXPECT_FALSE(std::is_sorted(arrived.begin(), arrived.end()));
  for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(net.Holds(1, kTarget + i * kMtu, kMtu, i));
}

// A reply covers all requests before it: a burst gets fewer replies than it has requests.
void FusedAcknowledgement() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  const auto& answers = net.Record(1);
  for (uint64_t i = 0; i < 32; ++i)
    net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 64, .remote = kTarget, .id = i});
  ExpectAllGood(net.Await(a, 32));
  net.network.RunFor(Milliseconds(1));
  const size_t replies = CountOf(answers, LinkEvent::kArrives, FrameKind::kReply);
  EXPECT_GE(replies, 1u);
  EXPECT_LE(replies, 16u);
}

// SENDs are placed as they arrive, also before a missing one, each in its own receive.
void UnorderedSend() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  for (uint64_t i = 0; i < 4; ++i) net.PostReceive(1, b, i, kTarget + i * 8192, 8192);
  const auto& frames = net.Record(0);
  net.Hurt(0, FaultKind::kLose, 0, [](const wire::ChannelFrame& frame) {
    return frame.message == 0 && frame.offset == kMtu;
  });
  for (uint64_t i = 0; i < 4; ++i) {
    net.Fill(0, i * 8192, 3 * kMtu, i);
    net.Post(0, a, {.local = i * 8192, .length = 3 * kMtu, .id = i});
  }
  bool ahead = false;
  while (!Arrived(frames, 0, kMtu)) {
    EXPECT_TRUE(b.Poll().empty());
    ahead = true;
    for (uint64_t i = 1; i < 4; ++i) ahead &= net.Holds(1, kTarget + i * 8192, 3 * kMtu, i);
    ASSERT_TRUE(net.network.RunOne());
  }
  EXPECT_TRUE(ahead);
  ExpectAllGood(net.Await(b, 4));
  for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(net.Holds(1, kTarget + i * 8192, 3 * kMtu, i));
}

// All kinds of requests in one queue, with loss, duplicates and reordering: in order and correct.
void MixedQueue() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  for (Link* link : net.wiring.up)
    link->faults().Set({.lose = 0.05, .duplicate = 0.05, .delay = 0.05});
  net.Fill(1, 0, 5000, 9);
  for (uint64_t i = 0; i < 8; ++i) net.PostReceive(1, b, i, kTarget + i * 8192, 8192);
  uint64_t id = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    const uint64_t at = (1 << 20) + i * 32768;
    net.Fill(0, at, 5000, 20 + i);
    net.Post(0, a, {.local = at, .length = 5000, .id = id++});
    net.Post(0, a,
             {.opcode = ROCEGW_WR_RDMA_WRITE,
              .local = at,
              .length = 5000,
              .remote = (2 << 20) + i * 8192,
              .id = id++});
    net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_READ, .local = at + 8192, .length = 5000, .id = id++});
    net.Post(0, a,
             {.opcode = ROCEGW_WR_ATOMIC_FETCH_AND_ADD,
              .local = at + 16384,
              .length = 8,
              .remote = 3 << 20,
              .compare_add = 1,
              .id = id++});
  }
  ExpectAllGood(net.Await(a, id));
  ExpectAllGood(net.Await(b, 8));
  for (uint64_t i = 0; i < 8; ++i) {
    const uint64_t at = (1 << 20) + i * 32768;
    EXPECT_TRUE(net.Holds(1, kTarget + i * 8192, 5000, 20 + i));
    EXPECT_TRUE(net.Holds(1, (2 << 20) + i * 8192, 5000, 20 + i));
    EXPECT_TRUE(net.Holds(0, at + 8192, 5000, 9));
    EXPECT_EQ(net.Word(0, at + 16384), i);
  }
  EXPECT_EQ(net.Word(1, 3 << 20), 8u);
}

// Queue pairs on one channel progress evenly: with equal work none is far ahead.
void ParallelInitiators() {
  constexpr size_t kPairs = 8;
  TwoGateways net;
  std::vector<RingEnd*> ends;
  for (size_t i = 0; i < kPairs; ++i) ends.push_back(&net.Connect().a);
  const auto& frames = net.Record(0);
  for (RingEnd* end : ends)
    net.Post(0, *end, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 256 * kMtu, .remote = kTarget});
  std::vector<uint64_t> bytes(kPairs);
  for (RingEnd* end : ends) ExpectAllGood(net.Await(*end, 1));
  uint64_t all = 0;
  for (const SeenFrame& seen : frames) {
    if (!Is(seen, LinkEvent::kLeaves, FrameKind::kWrite)) continue;
    bytes[seen.frame.source.value - 101] += seen.payload;
    all += seen.payload;
    if (all < kPairs * 128 * kMtu) continue;
    // Half of the work is done.
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    EXPECT_LE(*most - *least, 64 * kMtu);
    break;
  }
}

// A queue pair whose peer has no receive is stalled; eight messages of four other queue pairs pass
// it.
void HeadOfLineIsolation() {
  TwoGateways net;
  const auto stalled = net.Connect();
  std::vector<TwoGateways::Pair> others;
  others.reserve(4);
  for (int i = 0; i < 4; ++i) others.push_back(net.Connect());
  net.Post(0, stalled.a, {.length = 100 * kMtu});
  net.network.RunFor(Milliseconds(1));
  EXPECT_GT(net.Count(1, &metrics::WorkerCounters::rnr_tx_packets), 0u);
  const TimePoint from = net.network.now();
  for (int i = 0; i < 8; ++i)
    net.Post(0, others[i % 4].a,
             {.opcode = ROCEGW_WR_RDMA_WRITE,
              .length = 64,
              .remote = kTarget,
              .id = static_cast<uint64_t>(i / 4)});
  for (const auto& pair : others) ExpectAllGood(net.Await(pair.a, 2));
  EXPECT_LT((net.network.now() - from).ns, Microseconds(30).ns);
  EXPECT_TRUE(stalled.a.Poll().empty());
}

// --- Data path ---

void ReadAndWriteIntegrity() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  for (const uint32_t length : {0u, 1u, 7u, 8u, 9u, 63u, 64u, 1023u, 1024u, 1025u, 100'000u}) {
    net.Fill(0, 0, length, length + 1);
    net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = length, .remote = kTarget, .id = 0});
    ExpectAllGood(net.Await(a, 1));
    net.Post(0, a,
             {.opcode = ROCEGW_WR_RDMA_READ,
              .local = 1 << 20,
              .length = length,
              .remote = kTarget,
              .id = 0});
    const auto cqes = net.Await(a, 1);
    ExpectAllGood(cqes);
    EXPECT_EQ(cqes[0].byte_length, length);
    EXPECT_TRUE(net.Holds(1, kTarget, length, length + 1)) << length;
    EXPECT_TRUE(net.Holds(0, 1 << 20, length, length + 1)) << length;
  }
}

// Both atomics of verbs return the original value, even if every other packet is duplicated and
// responses are lost.
void Atomics() {
  TwoGateways net;
  RingEnd& a = net.Connect().a;
  net.SetWord(1, kTarget, 10);
  for (Link* link : net.wiring.up) link->faults().Set({.lose = 0.1, .duplicate = 0.5});
  const auto run = [&](uint8_t opcode, uint64_t compare_add, uint64_t swap) {
    net.Post(0, a,
             {.opcode = opcode,
              .length = 8,
              .remote = kTarget,
              .compare_add = compare_add,
              .swap = swap});
    ExpectAllGood(net.Await(a, 1));
    return net.Word(0, 0);
  };
  EXPECT_EQ(run(ROCEGW_WR_ATOMIC_FETCH_AND_ADD, 5, 0), 10u);
  EXPECT_EQ(run(ROCEGW_WR_ATOMIC_CMP_AND_SWP, 15, 100), 15u);
  EXPECT_EQ(run(ROCEGW_WR_ATOMIC_CMP_AND_SWP, 15, 200), 100u);
  EXPECT_EQ(run(ROCEGW_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 0), 100u);
  EXPECT_EQ(net.Word(1, kTarget), 99u);
}

// WRITEs of one to many packets, at every path MTU, at lengths around packet boundaries.
void WritesOfManyPackets() {
  for (uint8_t code = 1; code <= 5; ++code) {
    TwoGateways net;
    const auto [a, b] = net.Connect({.path_mtu = code, .channel = true});
    const uint32_t mtu = verbs::MtuBytes(code);
    const auto& frames = net.Record(0);
    for (const uint32_t length :
         {8u, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 40 * mtu, 40 * mtu + 3}) {
      net.Fill(0, 0, length, length);
      net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = length, .remote = kTarget});
      ExpectAllGood(net.Await(a, 1));
      EXPECT_TRUE(net.Holds(1, kTarget, length, length)) << length << " at " << mtu;
    }
    for (const SeenFrame& seen : frames) EXPECT_LE(seen.payload, mtu);
  }
}

// --- Wire format ---

// The bytes of a WRITE's frame are where docs/develop/wire_format.md says.
void BitLayout() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  std::vector<uint8_t> bytes;
  net.wiring.up[0]->Watch([&](LinkEvent event, const Packet& packet) {
    if (event == LinkEvent::kLeaves && packet.opcode() == 0xC0)
      bytes.assign(packet.bytes().begin(), packet.bytes().end());
  });
  net.Fill(0, 0, 10, 3);
  net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 10, .remote = 0x1234});
  ExpectAllGood(net.Await(a, 1));
  constexpr size_t kExtension = 12;
  constexpr size_t kFrame = 48;
  ASSERT_EQ(bytes.size(), kExtension + kFrame + 12 + 4);
  const auto word = [&](size_t at, size_t length) {
    uint64_t value = 0;
    for (size_t i = 0; i < length; ++i) value = value << 8 | bytes[kExtension + at + i];
    return value;
  };
  EXPECT_EQ(bytes[1] >> 4 & 3, 2);              // pad
  EXPECT_EQ(bytes[2] << 8 | bytes[3], 0xFFFF);  // P_Key
  EXPECT_EQ(word(0, 1), 0x12u);                 // version 1, kind 2: WRITE
  EXPECT_EQ(word(1, 1), 0x04u);                 // the last of its message
  EXPECT_EQ(word(4, 4), 0u);                    // tenant
  EXPECT_EQ(word(8, 3), 5001u);                 // destination endpoint
  EXPECT_EQ(word(11, 1), 0u);                   // syndrome
  EXPECT_EQ(word(12, 3), 101u);                 // source endpoint
  EXPECT_EQ(word(15, 1), 0u);                   // attempt
  EXPECT_EQ(word(16, 4), 0u);                   // message
  EXPECT_EQ(word(20, 4), 0u);                   // offset
  EXPECT_EQ(word(24, 4), 10u);                  // length
  EXPECT_EQ(word(28, 4), 0u);                   // receive
  EXPECT_EQ(word(32, 8), Host::kBase + 0x1234);
  EXPECT_EQ(word(40, 4), net.hosts[1].key());
  EXPECT_EQ(word(44, 4), 0u);
  EXPECT_TRUE(std::equal(bytes.begin() + kExtension + kFrame,
                         bytes.begin() + kExtension + kFrame + 10, net.memory(0).begin()));
}

// Frames recorded from the wire decode and encode to the same bytes, for every kind of frame.
void HeadersRoundTrip() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  std::set<uint8_t> kinds;
  for (Link* link : net.wiring.up) {
    link->Watch([&](LinkEvent event, const Packet& packet) {
      wire::ChannelFrame frame;
      std::span<const uint8_t> payload;
      if (event != LinkEvent::kArrives || !FrameIn(packet, frame, payload)) return;
      uint8_t header[wire::kMaxFrameLength] = {};
      const size_t length = wire::EncodeFrame(frame, header);
      EXPECT_EQ(packet.data + wire::kBthLength + length, payload.data());
      EXPECT_TRUE(std::equal(header, header + length, packet.data + wire::kBthLength));
      kinds.insert(static_cast<uint8_t>(frame.kind));
    });
  }
  net.PostReceive(1, b, 0, 0, 64);
  net.PostReceive(1, b, 1, 0, 64);
  for (const uint8_t opcode :
       {ROCEGW_WR_SEND, ROCEGW_WR_SEND_WITH_IMM, ROCEGW_WR_RDMA_WRITE, ROCEGW_WR_RDMA_READ,
        ROCEGW_WR_ATOMIC_CMP_AND_SWP, ROCEGW_WR_ATOMIC_FETCH_AND_ADD, ROCEGW_WR_ATOMIC_WRITE,
        ROCEGW_WR_ATOMIC_SWAP}) {
    net.Post(0, a, {.opcode = opcode, .length = 8, .remote = kTarget});
  }
  net.Post(0, a, {.opcode = ROCEGW_WR_FLUSH, .remote = kTarget, .swap = wire::kFlushGlobal});
  for (const rocegw_cqe& cqe : net.Await(a, 9)) EXPECT_EQ(cqe.status, 0);
  // All kinds except void frames.
  EXPECT_EQ(kinds.size(), static_cast<size_t>(FrameKind::kCount) - 1);
}

// --- Whole system ---

// Fifty thousand WRITEs, with the queue always full: none is lost, none executes twice.
void FiftyThousandRequests() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  constexpr uint64_t kRequests = 50'000;
  uint64_t posted = 0, done = 0;
  while (done < kRequests) {
    while (posted < kRequests && posted - done < 64) {
      net.Post(0, a,
               {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 64, .remote = kTarget, .id = posted++});
    }
    ASSERT_TRUE(net.network.RunOne());
    for (const rocegw_cqe& cqe : a.Poll()) {
      ASSERT_EQ(cqe.status, 0);
      ASSERT_EQ(cqe.wr_id, done++);
    }
  }
  EXPECT_EQ(net.Count(0, &metrics::WorkerCounters::request_tx_packets), kRequests);
  EXPECT_EQ(net.Count(0, &metrics::WorkerCounters::channel_resent_packets), 0u);
}

// --- Loss of packets of long messages (which the OpenURMA paper leaves open) ---

// Each frame of a WRITE of many packets is lost in turn, and its retransmission as well: only lost
// frames are sent again.
void LongWrite_EachPacketLost() {
  for (uint32_t which = 0; which < 20; ++which) {
    TwoGateways net;
    const auto [a, b] = net.Connect();
    net.Fill(0, 0, 20 * kMtu, which + 1);
    const auto& frames = net.Record(0);
    const auto matches = [which](const wire::ChannelFrame& frame) {
      return frame.kind == FrameKind::kWrite && frame.offset == which * kMtu;
    };
    net.Hurt(0, FaultKind::kLose, 0, matches);
    net.Hurt(0, FaultKind::kLose, 0, matches);
    net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 20 * kMtu, .remote = kTarget});
    ExpectAllGood(net.Await(a, 1));
    EXPECT_TRUE(net.Holds(1, kTarget, 20 * kMtu, which + 1)) << which;
    std::multiset<uint32_t> lost, again;
    std::set<uint32_t> sent;
    for (const SeenFrame& seen : frames) {
      if (seen.event == LinkEvent::kLost) lost.insert(seen.psn);
      if (seen.event == LinkEvent::kLeaves && !sent.insert(seen.psn).second) again.insert(seen.psn);
    }
    EXPECT_EQ(lost.size(), 2u) << which;
    EXPECT_EQ(again, lost) << which;
  }
}

// Several frames of several messages are lost: the PSNs sent again are those lost, and frames
// behind a hole are placed before it is filled.
void LongWrites_SomeLost() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  const auto& frames = net.Record(0);
  for (const uint32_t message : {0u, 2u, 3u}) {
    for (const uint32_t packet : {1u, 2u, 7u}) {
      net.Hurt(0, FaultKind::kLose, 0, [=](const wire::ChannelFrame& frame) {
        return frame.message == message && frame.offset == packet * kMtu;
      });
    }
  }
  for (uint64_t i = 0; i < 5; ++i) {
    net.Fill(0, i * 16384, 10 * kMtu, i + 1);
    net.Post(0, a,
             {.opcode = ROCEGW_WR_RDMA_WRITE,
              .local = i * 16384,
              .length = 10 * kMtu,
              .remote = kTarget + i * 16384,
              .id = i});
  }
  bool ahead = false;
  while (!Arrived(frames, 0, kMtu)) {
    ahead = std::equal(net.memory(0).begin() + 3 * kMtu, net.memory(0).begin() + 7 * kMtu,
                       net.memory(1).begin() + kTarget + 3 * kMtu);
    ASSERT_TRUE(net.network.RunOne());
  }
  EXPECT_TRUE(ahead);
  ExpectAllGood(net.Await(a, 5));
  std::multiset<uint32_t> lost, again;
  std::set<uint32_t> sent;
  for (const SeenFrame& seen : frames) {
    if (seen.event == LinkEvent::kLost) lost.insert(seen.psn);
    if (seen.event == LinkEvent::kLeaves && !sent.insert(seen.psn).second) again.insert(seen.psn);
  }
  EXPECT_EQ(lost.size(), 9u);
  EXPECT_EQ(again, lost);
  for (uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(net.Holds(1, kTarget + i * 16384, 10 * kMtu, i + 1));
}

// --- Ends ---

// A refusal arrives before the data of an earlier READ. The READ completes first, then the refused
// request fails.
void RefusalBehindARead() {
  TwoGateways net;
  const auto [a, b] = net.Connect();
  net.Fill(1, 0, 200 * kMtu, 4);
  net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_READ, .length = 200 * kMtu, .id = 0});
  net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 8, .id = 1, .wrong_key = 0x100});
  net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 8, .id = 2});
  const auto cqes = net.Await(a, 3);
  ASSERT_EQ(cqes.size(), 3u);
  EXPECT_EQ(cqes[0].status, 0);
  EXPECT_EQ(cqes[1].status, static_cast<uint8_t>(verbs::WcStatus::kRemoteAccess));
  EXPECT_EQ(cqes[2].status, static_cast<uint8_t>(verbs::WcStatus::kFlush));
  EXPECT_TRUE(net.Holds(0, 0, 200 * kMtu, 4));
}

// A destroyed endpoint answers every attempt at once, even while the sender's worker is still busy
// with it. The request still ends when its retries are spent.
void AbsentEndpoint() {
  TwoGateways net({.cable = {.delay = Nanoseconds(100)},
                   .host = {.cpu = {.turn = 1000, .send = 300}, .memory_bytes = 8 << 20}});
  const auto [a, b] =
      net.Connect({.path_mtu = 3, .timeout = 10, .retry_count = 3, .channel = true});
  net.hosts[1].Remove(b);
  net.Post(0, a, {.opcode = ROCEGW_WR_RDMA_WRITE, .length = 16 * kMtu});
  const TimePoint from = net.network.now();
  const auto cqes = net.Await(a, 1, Seconds(1));
  ASSERT_EQ(cqes.size(), 1u);
  EXPECT_EQ(cqes[0].status, static_cast<uint8_t>(verbs::WcStatus::kRetryExceeded));
  // Four times 4.2 ms, and a wait of 1.3 ms that had begun.
  EXPECT_NEAR(static_cast<double>((net.network.now() - from).ns) / 1e6, 17.5, 1.5);
}

struct Row {
  const char* name;
  void (*check)();
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class ChannelMatrix : public ::testing::TestWithParam<Row> {};

TEST_P(ChannelMatrix, Holds) { GetParam().check(); }

#define ROW(name) \
  Row { #name, name }

INSTANTIATE_TEST_SUITE_P(OpenUrma, ChannelMatrix,
                         ::testing::Values(ROW(InitiatorGating), ROW(TargetGating), ROW(Fence),
                                           ROW(IssueAndArrivalOrder), ROW(FusedAcknowledgement),
                                           ROW(UnorderedSend), ROW(MixedQueue),
                                           ROW(ParallelInitiators), ROW(HeadOfLineIsolation),
                                           ROW(ReadAndWriteIntegrity), ROW(Atomics),
                                           ROW(WritesOfManyPackets), ROW(BitLayout),
                                           ROW(HeadersRoundTrip), ROW(FiftyThousandRequests),
                                           ROW(LongWrite_EachPacketLost), ROW(LongWrites_SomeLost),
                                           ROW(RefusalBehindARead), ROW(AbsentEndpoint)),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace rocegw::sim
