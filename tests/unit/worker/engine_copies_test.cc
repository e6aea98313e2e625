// SPDX-License-Identifier: Apache-2.0
// Writes to remapped memory by a copy engine that is late, reorders, fails, and has few
// descriptors: the program sees the same as without an engine.
#include "gateway/worker/memory/engine_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "gateway/tenant/share.h"
#include "tests/support/copy_engine/fake_copy_queue.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

constexpr uint32_t kPacket = 4096;
constexpr uint8_t kMtu4096 = 5;

// Parameter: whether queue pairs use channels. Side 0 writes, side 1 has the engine.
class EngineCopiesTest : public ::testing::TestWithParam<bool> {
 protected:
  void Begin(const FakeCopyOptions& fake, uint32_t most_of_pool = 0) {
    queue_ = std::make_unique<FakeCopyQueue>(fake);
    GatewayPairOptions options;
    options.reach = Reach::kDirect;
    options.channels = GetParam();
    options.engines[1] = {
        .queue = queue_.get(), .minimum_bytes = 1024, .most_of_pool = most_of_pool};
    options.shares[1] = {&first_, &second_};
    gateways_.emplace(options);
    for (size_t i = 0; i < gateways_->memory(0).size(); ++i)
      gateways_->memory(0)[i] = static_cast<uint8_t>(i * 7 + i / 251);
  }
  RingEnd& Connected(uint32_t qpn, uint32_t target_session = 1) {
    RingOptions ring;
    ring.qpn = ring.handle = qpn;
    RingEnd& from = gateways_->AddQp(0, ring);
    ring.session = target_session;
    RingEnd& to = gateways_->AddQp(1, ring);
    gateways_->Connect(from, to, kMtu4096);
    targets_.push_back(&to);
    return from;
  }
  void Post(RingEnd& from, uint8_t opcode, uint64_t local, uint64_t remote, uint32_t length,
            uint32_t target_session = 1) {
    rocegw_send_wqe wqe{};
    wqe.opcode = opcode;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = gateways_->Base(1) + remote;
    wqe.u.rdma.rkey = GatewayPair::KeyOf(1, target_session).value;
    ASSERT_TRUE(from.PostSend(wqe, {{gateways_->Base(0) + local, length, GatewayPair::kKey[0]}}));
    gateways_->Ring(0, from);
  }
  void Write(RingEnd& from, uint64_t local, uint64_t remote, uint32_t length,
             uint32_t target_session = 1) {
    Post(from, ROCEGW_WR_RDMA_WRITE, local, remote, length, target_session);
  }
  // Runs until so many requests have completed. After each round the engine must be quiet.
  bool Complete(RingEnd& end, size_t wanted) {
    size_t done = 0;
    for (int i = 0; i < 5000 && done < wanted; ++i) {
      gateways_->Step();
      EXPECT_EQ(queue_->in_flight(), 0u);
      for (const rocegw_cqe& cqe : end.Poll()) {
        EXPECT_EQ(cqe.status, 0u);
        ++done;
      }
    }
    return done == wanted;
  }
  bool Arrived(uint64_t local, uint64_t remote, uint32_t length) {
    return std::memcmp(gateways_->memory(1).data() + remote, gateways_->memory(0).data() + local,
                       length) == 0;
  }
  uint64_t Count(metrics::Counter metrics::WorkerCounters::*counter) {
    return gateways_->Count(1, counter);
  }

  tenant::Share first_{nullptr};
  tenant::Share second_{nullptr};
  std::unique_ptr<FakeCopyQueue> queue_;
  std::optional<GatewayPair> gateways_;
  std::vector<RingEnd*> targets_;
};

TEST_P(EngineCopiesTest, LateCopiesInAnyOrder_DataIsThereWithTheCompletion) {
  Begin({.latest = 9});
  RingEnd& from = Connected(100);
  constexpr uint32_t kLength = 200 * kPacket;
  Write(from, 0, 64, kLength);
  ASSERT_TRUE(Complete(from, 1));
  EXPECT_TRUE(Arrived(0, 64, kLength));
  const uint64_t copies = Count(&metrics::WorkerCounters::memory_engine_operations);
  EXPECT_GT(copies, 50u);
  EXPECT_EQ(copies, queue_->added());
  EXPECT_GT(Count(&metrics::WorkerCounters::memory_engine_bytes), copies * (kPacket - 8) - 1);
  // A doorbell starts several.
  EXPECT_LT(queue_->starts(), copies / 2);
}

TEST_P(EngineCopiesTest, LastBytesOfAMessage_AppearLast) {
  constexpr uint32_t kLength = 60 * kPacket;
  bool early = false;
  FakeCopyOptions fake{.latest = 5};
  fake.on_copy = [&](const uint8_t*, uint32_t) {
    early = early || gateways_->memory(1)[kLength - 1] != 0;
  };
  Begin(fake);
  RingEnd& from = Connected(100);
  gateways_->memory(0)[kLength - 1] = 0xA5;
  Write(from, 0, 0, kLength);
  ASSERT_TRUE(Complete(from, 1));
  EXPECT_GT(queue_->added(), 0u);
  EXPECT_EQ(gateways_->memory(1)[kLength - 1], 0xA5);
  EXPECT_FALSE(early);
}

TEST_P(EngineCopiesTest, MessagesThatEndWithinABurst_KeepTheirLastWordFromTheEngine) {
  constexpr uint32_t kLength = 2 * kPacket;
  bool whole = false;
  FakeCopyOptions fake{.latest = 5};
  fake.on_copy = [&](const uint8_t* to, uint32_t length) {
    whole = whole || (to + length - gateways_->memory(1).data()) % kLength == 0;
  };
  Begin(fake);
  RingEnd& from = Connected(100);
  constexpr uint32_t kMessages = 30;
  for (uint32_t i = 0; i < kMessages; ++i) Write(from, i * kLength, i * kLength, kLength);
  ASSERT_TRUE(Complete(from, kMessages));
  EXPECT_GT(queue_->added(), kMessages);
  EXPECT_TRUE(Arrived(0, 0, kMessages * kLength));
  EXPECT_FALSE(whole);
}

TEST_P(EngineCopiesTest, FlagInASecondMessage_AppearsAfterTheFirst) {
  constexpr uint32_t kLength = 20 * kPacket;
  constexpr uint64_t kFlag = 900000;
  bool early = false;
  FakeCopyOptions fake{.latest = 5};
  fake.on_copy = [&](const uint8_t*, uint32_t) {
    early = early || gateways_->memory(1)[kFlag] != 0;
  };
  Begin(fake);
  RingEnd& from = Connected(100);
  gateways_->memory(0)[kFlag] = 0xA5;
  for (int i = 0; i < 20; ++i) {
    gateways_->memory(1)[kFlag] = 0;
    Write(from, 0, 0, kLength);
    Write(from, kFlag, kFlag, 8);
    ASSERT_TRUE(Complete(from, 2));
    ASSERT_EQ(gateways_->memory(1)[kFlag], 0xA5);
    ASSERT_FALSE(early) << i;
  }
  EXPECT_GT(queue_->added(), 0u);
}

TEST_P(EngineCopiesTest, FailedCopies_AreMadeByTheProcessor) {
  Begin({.fails = 30});
  RingEnd& from = Connected(100);
  constexpr uint32_t kLength = 200 * kPacket;
  Write(from, 0, 0, kLength);
  ASSERT_TRUE(Complete(from, 1));
  EXPECT_TRUE(Arrived(0, 0, kLength));
  const uint64_t failed = Count(&metrics::WorkerCounters::memory_engine_failed_operations);
  EXPECT_GT(failed, 5u);
  EXPECT_EQ(Count(&metrics::WorkerCounters::memory_engine_operations) + failed, queue_->added())
      << "what failed does not count as written by the engine";
  EXPECT_EQ(Count(&metrics::WorkerCounters::memory_engine_operations) +
                Count(&metrics::WorkerCounters::memory_direct_operations),
            200u)
      << "each piece is written once";
}

// Copies of two sessions are under way when the engine stops. Takes the second after which it is
// given up.
TEST_P(EngineCopiesTest, EngineThatStopsAnswering_IsAbandonedAndNothingIsLost) {
  Begin({.latest = 3, .dies_after = 20});
  RingEnd& one = Connected(100, 1);
  RingEnd& two = Connected(200, 2);
  constexpr uint32_t kLength = 100 * kPacket;
  Write(one, 0, 0, kLength, 1);
  Write(two, kPacket, kLength, kLength, 2);
  ASSERT_TRUE(Complete(one, 1));
  for (int i = 0; i < 1000 && !Arrived(kPacket, kLength, kLength); ++i) gateways_->Step();
  EXPECT_TRUE(Arrived(0, 0, kLength));
  EXPECT_TRUE(Arrived(kPacket, kLength, kLength));
  EXPECT_EQ(queue_->abandoned(), 1u);
  EXPECT_EQ(Count(&metrics::WorkerCounters::memory_engine_abandoned_events), 1u);
  const uint64_t added = queue_->added();
  Write(one, 0, 0, kLength, 1);
  ASSERT_TRUE(Complete(one, 1));
  EXPECT_EQ(queue_->added(), added) << "it is never used again";
}

TEST_P(EngineCopiesTest, EngineFailsAlways_IsGivenUp) {
  Begin({.depth = 8, .fails = 100});
  RingEnd& from = Connected(100);
  for (int i = 0; i < 10; ++i) {
    Write(from, 0, 0, 50 * kPacket);
    ASSERT_TRUE(Complete(from, 1));
    ASSERT_TRUE(Arrived(0, 0, 50 * kPacket));
  }
  EXPECT_GE(queue_->added(), worker::EngineCopies::kMostFailures);
  EXPECT_LT(queue_->added(), worker::EngineCopies::kMostFailures + 8);
  EXPECT_EQ(Count(&metrics::WorkerCounters::memory_engine_pause_events), 1u);
}

TEST_P(EngineCopiesTest, EngineFailsAlways_IsTriedAgainSeldom) {
  Begin({.depth = 8, .fails = 100});
  RingEnd& from = Connected(100);
  for (uint32_t i = 0; i < 2 * worker::EngineCopies::kBurstsWithout &&
                       queue_->added() < 2 * worker::EngineCopies::kMostFailures;
       ++i) {
    Write(from, 0, 0, 50 * kPacket);
    ASSERT_TRUE(Complete(from, 1));
  }
  EXPECT_GE(queue_->added(), 2 * worker::EngineCopies::kMostFailures);
  EXPECT_LT(queue_->added(), 2 * worker::EngineCopies::kMostFailures + 16);
}

TEST_P(EngineCopiesTest, NoDescriptorFree_TheProcessorCopies) {
  Begin({.depth = 2, .latest = 3});
  RingEnd& from = Connected(100);
  Write(from, 0, 0, 100 * kPacket);
  ASSERT_TRUE(Complete(from, 1));
  EXPECT_TRUE(Arrived(0, 0, 100 * kPacket));
  EXPECT_GT(Count(&metrics::WorkerCounters::memory_engine_refused_operations), 10u);
}

TEST_P(EngineCopiesTest, OnePool_LeavesDescriptorsToTheOthers) {
  Begin({.depth = 64, .latest = 50}, 5);
  RingEnd& greedy = Connected(100, 1);
  RingEnd& other = Connected(200, 2);
  constexpr uint32_t kLength = 100 * kPacket;
  Write(greedy, 0, 0, kLength, 1);
  ASSERT_TRUE(Complete(greedy, 1));
  EXPECT_EQ(queue_->most_in_flight(), 5u);
  Write(greedy, 0, 0, kLength, 1);
  Write(other, 0, kLength, kLength, 2);
  ASSERT_TRUE(Complete(greedy, 1));
  // Both have theirs where their packets share a burst.
  EXPECT_GT(queue_->most_in_flight(), 5u);
  EXPECT_LE(queue_->most_in_flight(), 10u);
  (void)other.Poll();
  EXPECT_TRUE(Arrived(0, 0, kLength));
}

TEST_P(EngineCopiesTest, WritesToTheSameBytes_TheLastOneStays) {
  Begin({.latest = 9});
  RingEnd& from = Connected(100);
  for (uint32_t round = 0; round < 20; ++round) {
    constexpr uint32_t kWrites = 16;
    for (uint32_t i = 0; i < kWrites; ++i) Write(from, i * kPacket, 100 * (i % 3), kPacket);
    ASSERT_TRUE(Complete(from, kWrites));
    ASSERT_TRUE(Arrived((kWrites - 1) * kPacket, 0, kPacket)) << round;
  }
  EXPECT_GT(queue_->added(), 0u);
}

TEST_P(EngineCopiesTest, ReadAfterWrites_SeesThem) {
  Begin({.latest = 9});
  RingEnd& from = Connected(100);
  constexpr uint32_t kLength = 12 * kPacket;
  constexpr uint64_t kBack = 500000;
  Write(from, 0, 0, kLength);
  Post(from, ROCEGW_WR_RDMA_READ, kBack, 0, kLength);
  ASSERT_TRUE(Complete(from, 2));
  EXPECT_GT(queue_->added(), 0u);
  EXPECT_EQ(std::memcmp(gateways_->memory(0).data() + kBack, gateways_->memory(0).data(), kLength),
            0);
}

TEST_P(EngineCopiesTest, ReceivesAndReadResponses_AreCopiedToo) {
  Begin({.latest = 5});
  RingEnd& from = Connected(100);
  RingEnd& to = *targets_.front();
  constexpr uint32_t kLength = 100 * kPacket;
  to.PostReceive(1, {{gateways_->Base(1), kLength, GatewayPair::kKey[1]}});
  Post(from, ROCEGW_WR_SEND, 0, 0, kLength);
  ASSERT_TRUE(Complete(from, 1));
  EXPECT_TRUE(Arrived(0, 0, kLength));
  const uint64_t received = queue_->added();
  EXPECT_GT(received, 0u);
  ASSERT_EQ(to.Poll().size(), 1u);
  // Side 1 reads from side 0 into its memory.
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_READ;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  wqe.u.rdma.remote_address = gateways_->Base(0) + 8;
  wqe.u.rdma.rkey = GatewayPair::kKey[0];
  ASSERT_TRUE(to.PostSend(wqe, {{gateways_->Base(1), kLength, GatewayPair::kKey[1]}}));
  gateways_->Ring(1, to);
  ASSERT_TRUE(Complete(to, 1));
  EXPECT_TRUE(Arrived(8, 0, kLength));
  EXPECT_GT(queue_->added(), received);
}

TEST_P(EngineCopiesTest, ShortMessagesAndBursts_UseTheProcessor) {
  Begin({});
  RingEnd& from = Connected(100);
  for (int i = 0; i < 32; ++i) Write(from, 0, 64 * static_cast<uint64_t>(i), 64);
  ASSERT_TRUE(Complete(from, 32));
  EXPECT_EQ(queue_->added(), 0u) << "shorter than the minimum";
  for (int i = 0; i < 8; ++i) {
    Write(from, 0, 0, 2 * kPacket);
    ASSERT_TRUE(Complete(from, 1));
  }
  EXPECT_EQ(queue_->added(), 0u) << "as many datagrams as the processor copies itself";
}

TEST_P(EngineCopiesTest, RegionAndSessionAreUnlinked_WhileDataArrives) {
  Begin({.latest = 9});
  RingEnd& from = Connected(100);
  Write(from, 0, 0, 200 * kPacket);
  bool removed = false;
  for (int i = 0; i < 200; ++i) {
    gateways_->Step(Microseconds(1));
    ASSERT_EQ(queue_->in_flight(), 0u);
    if (removed || queue_->added() < 20) continue;
    removed = true;
    ASSERT_EQ(
        gateways_->Call(1, 0, {0, worker::UnlinkRegion{SessionId{1}, GatewayPair::KeyOf(1, 1)}})
            .error,
        0);
    // From here on the program may use the memory for anything else.
    std::fill(gateways_->memory(1).begin(), gateways_->memory(1).end(), uint8_t{0x5C});
  }
  ASSERT_TRUE(removed);
  EXPECT_TRUE(std::ranges::all_of(gateways_->memory(1), [](uint8_t b) { return b == 0x5C; }));
  gateways_->Remove(1, *targets_.front());
  EXPECT_EQ(gateways_->Call(1, 0, {0, worker::UnlinkSession{SessionId{1}}}).error, 0);
}

// Model: the bytes that all writes leave, whose ranges are disjoint between queue pairs.
TEST_P(EngineCopiesTest, RandomWrites_LeaveTheBytesOfTheModel) {
  const uint64_t seed = TestSeed(20261128);
  Begin({.depth = 24, .seed = seed, .latest = 12, .fails = 3});
  Random random(seed);
  constexpr size_t kQps = 6;
  constexpr size_t kShare = 160 << 10;
  std::vector<RingEnd*> ends;
  for (uint32_t i = 0; i < kQps; ++i) ends.push_back(&Connected(100 + i));
  std::vector<uint8_t> model(gateways_->memory(1).begin(), gateways_->memory(1).end());
  for (int round = 0; round < 60; ++round) {
    std::vector<size_t> posted(kQps);
    for (size_t n = random.Between(1, 40); n != 0; --n) {
      const size_t q = random.Below(kQps);
      const auto length = static_cast<uint32_t>(random.Coin() ? random.Between(1, 64)
                                                              : random.Between(1, 48 << 10));
      const size_t remote = q * kShare + random.Below(kShare - length);
      const size_t local = random.Below(gateways_->memory(0).size() - length);
      if (posted[q] == 16) continue;
      Write(*ends[q], local, remote, length);
      std::copy_n(gateways_->memory(0).begin() + static_cast<ptrdiff_t>(local), length,
                  model.begin() + static_cast<ptrdiff_t>(remote));
      ++posted[q];
    }
    std::vector<size_t> done(kQps);
    for (int i = 0; i < 5000 && done != posted; ++i) {
      gateways_->Step();
      ASSERT_EQ(queue_->in_flight(), 0u);
      for (size_t q = 0; q < kQps; ++q) done[q] += ends[q]->Poll().size();
    }
    ASSERT_EQ(done, posted) << round;
    ASSERT_EQ(gateways_->memory(1), model) << round;
  }
  EXPECT_GT(queue_->added(), 100u);
}

INSTANTIATE_TEST_SUITE_P(Paths, EngineCopiesTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Channel" : "Native"; });

}  // namespace
}  // namespace rocegw::testing
