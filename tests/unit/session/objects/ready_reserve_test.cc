// SPDX-License-Identifier: Apache-2.0
// A pool's reserve: filled, given to one program as a whole, charged and returned.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "tests/support/session/worker_host.h"

namespace rocegw::testing {
namespace {

using session::Resource;

constexpr char kReadyPool[] = "tenants/t/pools/p";
constexpr uint64_t kHeapOfOne =
    session::ReadyReserve::kHeapOfQp + session::ReadyReserve::kHeapOfCmId;

class ReadyReserveTest : public ::testing::Test {
 protected:
  ReadyReserveTest() {
    settings.name = kReadyPool;
    settings.uid = "one";
    settings.trusted = true;
  }
  tenant::Registry& pools() { return host.server->services().pools; }
  tenant::Pool& Pool() { return *pools().FindPool(kReadyPool); }
  std::shared_ptr<session::ReadyReserve> Reserve() { return host.server->reserves().Of(Pool()); }
  void Keep(uint32_t ready_qps) {
    settings.ready_qps = ready_qps;
    host.SetPool(settings);
    TurnUntil([&] { return IsFull(ready_qps); });
    host.Settle();
  }
  bool IsFull(uint32_t ready_qps) {
    return Reserve()->ready() == ready_qps && Reserve()->heap() == ready_qps * kHeapOfOne &&
           Reserve()->bytes() == tenant::ReserveBytes(ready_qps);
  }
  template <typename Condition>
  void TurnUntil(const Condition& condition) {
    while (!condition()) host.Turn();
  }
  size_t Numbers() { return host.server->services().qpns.in_use(); }

  tenant::PoolSettings settings;
  WorkerHost host{2, {}, false};
};

TEST_F(ReadyReserveTest, Fill_IsChargedAndLoweringGivesBack) {
  Keep(20);
  EXPECT_EQ(Reserve()->bytes(), uint64_t{8} << 20);
  EXPECT_EQ(Pool().used(Resource::kSegmentBytes), uint64_t{8} << 20);
  EXPECT_EQ(Pool().used(Resource::kQps), 0u) << "no program has them";
  EXPECT_EQ(Numbers(), 20u);
  Keep(3);
  EXPECT_EQ(Pool().used(Resource::kSegmentBytes), uint64_t{4} << 20);
  EXPECT_EQ(Numbers(), 3u);
  Keep(0);
  EXPECT_EQ(Pool().used(Resource::kSegmentBytes), 0u);
  EXPECT_EQ(Numbers(), 0u);
}

TEST_F(ReadyReserveTest, RemovedAndReplacedPools_LeaveNothing) {
  Keep(20);
  settings.uid = "two";
  Keep(5);
  EXPECT_EQ(Numbers(), 5u);
  EXPECT_EQ(pools().gateway().used(Resource::kSegmentBytes), tenant::ReserveBytes(5));
  host.server->RemovePool(kReadyPool);
  host.Settle();
  EXPECT_EQ(Numbers(), 0u);
  EXPECT_EQ(pools().gateway().used(Resource::kSegmentBytes), 0u);
  size_t left = 0;
  pools().ForEachPool([&](const tenant::Pool& pool) { left += pool.leaving() ? 1 : 0; });
  EXPECT_EQ(left, 0u);
}

TEST_F(ReadyReserveTest, PoolGoesWhileSomeAreBeingMade_LeavesNothing) {
  settings.ready_qps = 64;
  host.SetPool(settings);
  // Sent to the workers, which have not answered.
  while (host.server->services().workers.unanswered() == 0) host.loop.RunOnce(Milliseconds(1));
  host.server->RemovePool(kReadyPool);
  host.Settle();
  EXPECT_EQ(Numbers(), 0u);
  EXPECT_EQ(pools().gateway().used(Resource::kSegmentBytes), 0u);
}

TEST_F(ReadyReserveTest, Program_PaysForWhatItTookAndItsEndGivesAllBack) {
  Keep(20);
  {
    auto program = host.Begin(kReadyPool);
    for (int i = 0; i < 10; ++i) {
      const auto qp = program.client->CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, 128);
      ASSERT_EQ(program.client->error(), 0);
      // Some in early states, some in later ones: the program dies in between.
      if (i % 2 == 0) {
        ASSERT_EQ(WorkerHost::Connect(*program.client, qp.handle), 0);
      }
    }
    EXPECT_EQ(Reserve()->hits(), 10u);
    EXPECT_EQ(Pool().used(Resource::kQps), 10u);
    EXPECT_EQ(Pool().set_up().count(), 5u);
    TurnUntil([&] { return IsFull(20); });
    EXPECT_EQ(Pool().used(Resource::kSegmentBytes),
              tenant::ReserveBytes(20) + 2 * tenant::kReadyChunkBytes);
    EXPECT_EQ(Numbers(), 30u);
  }
  TurnUntil([&] { return host.server->session_count() == 0; });
  host.Settle();
  EXPECT_EQ(Pool().used(Resource::kQps), 0u);
  EXPECT_EQ(Pool().used(Resource::kSegmentBytes), tenant::ReserveBytes(20));
  EXPECT_EQ(Numbers(), 20u);
}

TEST_F(ReadyReserveTest, PoolGoesUnderAProgram_WhichGoesOnAndLeavesNothing) {
  Keep(4);
  {
    auto program = host.Begin(kReadyPool);
    const auto qp = program.client->CreateQp(program.pd, program.cq);
    ASSERT_EQ(program.client->error(), 0);
    host.server->RemovePool(kReadyPool);
    EXPECT_EQ(WorkerHost::Connect(*program.client, qp.handle), 0);
    program.client->CreateQp(program.pd, program.cq);
    EXPECT_EQ(program.client->error(), ENOMEM) << "a pool that leaves grants nothing";
  }
  TurnUntil([&] { return host.server->session_count() == 0; });
  host.Settle();
  EXPECT_EQ(pools().gateway().used(Resource::kSegmentBytes), 0u);
  EXPECT_EQ(pools().gateway().used(Resource::kQps), 0u);
  EXPECT_EQ(Numbers(), 0u);
}

// A later program finds zeros, in memory that no program had before.
TEST_F(ReadyReserveTest, Chunk_NeverServesTwoPrograms) {
  Keep(4);
  std::set<ino_t> files;
  std::vector<std::unique_ptr<TestClient>> former;  // keep their files' inode numbers in use
  for (int life = 0; life < 4; ++life) {
    TurnUntil([&] { return IsFull(4); });
    auto program = host.Begin(kReadyPool);
    const auto qp = program.client->CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, 128);
    ASSERT_EQ(program.client->error(), 0);
    const auto* const ring = program.client->At(qp.sq_payload);
    EXPECT_TRUE(std::all_of(ring, ring + qp.sq_payload.length, [](uint8_t b) { return b == 0; }));
    std::memset(program.client->At(qp.sq_payload), 0xEE, qp.sq_payload.length);
    for (const auto& [number, chunk] : program.client->chunks) {
      struct stat file {};
      ASSERT_EQ(::fstat(chunk.fd.get(), &file), 0);
      EXPECT_TRUE(files.insert(file.st_ino).second) << "of an earlier program";
    }
    program.client->Disconnect();
    TurnUntil([&] { return host.server->session_count() == 0; });
    former.push_back(std::move(program.client));
  }
  EXPECT_EQ(Reserve()->misses(), 0u);
}

// Blocks of a destroyed queue pair are zero for the next one.
TEST_F(ReadyReserveTest, BlocksThatComeBack_AreZeroAgain) {
  Keep(4);
  auto program = host.Begin(kReadyPool);
  TestClient& client = *program.client;
  for (int i = 0; i < 3; ++i) {
    const auto qp = client.CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, 64);
    ASSERT_EQ(client.error(), 0);
    for (const rocegw_location& at : {qp.control, qp.sq, qp.sq_payload, qp.rq}) {
      uint8_t* const bytes = client.At(at);
      EXPECT_TRUE(std::all_of(bytes, bytes + at.length, [](uint8_t b) { return b == 0; })) << i;
      std::memset(bytes, 0x5A, at.length);
    }
    client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
    ASSERT_EQ(client.error(), 0);
  }
}

TEST_F(ReadyReserveTest, NoMemoryForIt_IsToldAndTriedAgain) {
  settings.quota.peak[Resource::kSegmentBytes] = tenant::kReadyChunkBytes;
  settings.ready_qps = 4;
  host.SetPool(settings);
  TurnUntil([&] { return Reserve()->ready() == 4 && Reserve()->is_short(); });
  EXPECT_EQ(Reserve()->bytes(), tenant::kReadyChunkBytes) << "one of the two";
  const auto events = host.server->services().events.Rows();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].reason, "RESERVE_SHORT");
  EXPECT_EQ(events[0].object, kReadyPool);
  settings.quota.peak[Resource::kSegmentBytes] = tenant::kUnlimited;
  Keep(4);
}

TEST_F(ReadyReserveTest, Heap_IsChargedAndGivenBack) {
  Keep(20);
  EXPECT_EQ(Pool().used(Resource::kHeapBytes), 20 * kHeapOfOne);
  Keep(3);
  EXPECT_EQ(Pool().used(Resource::kHeapBytes), 3 * kHeapOfOne);
  Keep(0);
  EXPECT_EQ(Pool().used(Resource::kHeapBytes), 0u);
}

TEST_F(ReadyReserveTest, RemovedPool_IsChargedForNoHeap) {
  Keep(20);
  host.server->RemovePool(kReadyPool);
  host.Settle();
  EXPECT_EQ(pools().gateway().used(Resource::kHeapBytes), 0u);
}

// Neither the pool's own limit nor the share of what is left in the gateway.
TEST_F(ReadyReserveTest, Heap_NeverExceedsWhatThePoolMayHave) {
  constexpr uint64_t kMost = 10 * session::ReadyReserve::kHeapOfQp;
  settings.quota.peak[Resource::kHeapBytes] = kMost;
  settings.ready_qps = 64;
  host.SetPool(settings);
  while (!Reserve()->is_short()) {
    host.Turn();
    ASSERT_LE(Pool().used(Resource::kHeapBytes), kMost);
  }
  host.Settle();
  EXPECT_EQ(Reserve()->ready(), 10u);
  EXPECT_EQ(Numbers(), 10u) << "no queue pair is made that the pool may not have";
  const auto events = host.server->services().events.Rows();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].reason, "RESERVE_SHORT");
  settings.quota.peak[Resource::kHeapBytes] = tenant::kUnlimited;
  Keep(64);
}

// The reserve's charge ends before the program's begins, so that the same memory is never charged
// twice.
TEST_F(ReadyReserveTest, ProgramOfAPoolThatIsFull_TakesWhatTheReserveHolds) {
  Keep(4);
  auto program = host.Begin(kReadyPool);
  // Not enough for a queue pair, but for its receives and the program's first chunks.
  settings.quota.peak[Resource::kHeapBytes] =
      Pool().used(Resource::kHeapBytes) + session::ReadyReserve::kHeapOfQp / 2;
  host.SetPool(settings);
  const auto qp = program.client->CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, 16);
  ASSERT_EQ(program.client->error(), 0);
  TurnUntil([&] { return Reserve()->is_short(); });
  EXPECT_EQ(Reserve()->ready(), 3u);
  EXPECT_LE(Pool().used(Resource::kHeapBytes), Pool().Peak(Resource::kHeapBytes));
  program.client->Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  TurnUntil([&] { return Reserve()->ready() == 4; });
  EXPECT_LE(Pool().used(Resource::kHeapBytes), Pool().Peak(Resource::kHeapBytes));
}

TEST_F(ReadyReserveTest, WhatItCannotBecome_IsAMiss) {
  Keep(4);
  auto program = host.Begin(kReadyPool);
  program.client->CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, 4096);
  ASSERT_EQ(program.client->error(), 0);
  EXPECT_EQ(Reserve()->misses(), 1u);
  program.client->CreateQp(program.pd, program.cq, ROCEGW_QPT_UD, 16);
  ASSERT_EQ(program.client->error(), 0);
  EXPECT_EQ(Reserve()->misses(), 1u) << "datagrams are never ready";
  EXPECT_EQ(Reserve()->hits(), 0u);
  EXPECT_EQ(Reserve()->ready(), 4u);
}

TEST_F(ReadyReserveTest, NoMemoryForTheProgram_LeavesTheReserveWhole) {
  settings.quota.peak[Resource::kSegmentBytes] = tenant::ReserveBytes(1);
  Keep(1);
  auto program = host.Begin(kReadyPool);
  std::vector<rocegw_qp_reply> made;
  while (program.client->error() == 0)
    made.push_back(program.client->CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, 256));
  EXPECT_EQ(program.client->error(), ENOMEM);
  EXPECT_GT(made.size(), 2u);
  TurnUntil([&] { return Reserve()->ready() == 1; });
  const size_t numbers = Numbers();
  program.client->CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, 256);
  EXPECT_EQ(program.client->error(), ENOMEM);
  EXPECT_EQ(Reserve()->ready(), 1u);
  EXPECT_EQ(Numbers(), numbers);
}

// The session answers before the worker only while the worker cannot refuse.
TEST_F(ReadyReserveTest, StatesOutOfOrder_AreRefusedAsEver) {
  Keep(4);
  auto program = host.Begin(kReadyPool);
  TestClient& client = *program.client;
  const auto qp = client.CreateQp(program.pd, program.cq);
  ASSERT_EQ(client.error(), 0);
  rocegw_qp_attr attr{};
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kRts);
  EXPECT_EQ(client.Modify(qp.handle, verbs::kAttrState, attr), EINVAL) << "from RESET";
  ASSERT_EQ(WorkerHost::Connect(client, qp.handle), 0);
  EXPECT_NE(WorkerHost::Connect(client, qp.handle), 0) << "it is in RTS";
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kError);
  EXPECT_EQ(client.Modify(qp.handle, verbs::kAttrState, attr), 0);
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kReset);
  EXPECT_EQ(client.Modify(qp.handle, verbs::kAttrState, attr), 0);
  EXPECT_EQ(WorkerHost::Connect(client, qp.handle), 0) << "once more, by asking the worker";
  EXPECT_EQ(Pool().set_up().count(), 1u) << "only the first time is a set-up";
}

TEST_F(ReadyReserveTest, FailedOnItsWay_IsNotToldOtherwise) {
  Keep(4);
  auto program = host.Begin(kReadyPool);
  TestClient& client = *program.client;
  const auto qp = client.CreateQp(program.pd, program.cq);
  rocegw_qp_attr attr{};
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kInit);
  attr.port_num = 1;
  const uint32_t to_init =
      verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrAccessFlags;
  ASSERT_EQ(client.Modify(qp.handle, to_init, attr), 0);
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kError);
  ASSERT_EQ(client.Modify(qp.handle, verbs::kAttrState, attr), 0);
  EXPECT_NE(WorkerHost::Connect(client, qp.handle), 0);
}

}  // namespace
}  // namespace rocegw::testing
