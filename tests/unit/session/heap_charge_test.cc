// SPDX-License-Identifier: Apache-2.0
// Charges for heap are upper bounds: the allocator gives objects of a kind no more than their pool
// is charged.
#include <gtest/gtest.h>
#include <malloc.h>

#include <functional>
#include <optional>
#include <string>

#include "gateway/transport/queues/receive_queue.h"
#include "gateway/transport/queues/send_queue.h"
#include "tests/support/session/worker_host.h"
#include "tests/unit/session/cm_pair.h"

namespace rocegw::testing {
namespace {

using session::Resource;

size_t AllocatedBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

class HeapCharge : public ::testing::Test {
 protected:
  uint64_t Charged() { return host.server->services().pools.gateway().used(Resource::kHeapBytes); }
  // `make` creates one object. Tables that double are part of the cost.
  void ExpectCharged(const std::string& kind, const std::function<bool()>& make) {
    constexpr int kObjects = 3000;
    ASSERT_TRUE(make()) << kind;
    const size_t allocated = AllocatedBytes();
    const uint64_t charged = Charged();
    for (int i = 0; i < kObjects; ++i) ASSERT_TRUE(make()) << kind << " " << i;
    const size_t more = AllocatedBytes() - allocated;
    EXPECT_GT(more, 0u) << kind;
    EXPECT_LE(more, Charged() - charged)
        << kind << " takes " << more / kObjects << " bytes of heap each";
  }

  SessionHost host{2, {}, 4096, {cm_pair::DeviceAt(cm_pair::kFirst)}, cm_pair::FirstAddress};
  cm_pair::Program program{host};
};

TEST_F(HeapCharge, ObjectsOfEachKind_TakeNoMoreThanIsCharged) {
  TestClient& client = program.client;
  ExpectCharged("pd", [&] { return client.AllocPd(program.context) != 0; });
  ExpectCharged("mr", [&] { return client.RegMr(program.pd, 4096, 64).handle != 0; });
  ExpectCharged("cq", [&] { return client.CreateCq(program.context).handle != 0; });
  ExpectCharged("qp", [&] { return program.CreateQp().handle != 0; });
  // Including the waiting event about each.
  ExpectCharged("cm id", [&] {
    program.ResolveAddr(program.CreateId(), cm_pair::Address(cm_pair::kSecond, 7000));
    return client.error() == 0;
  });
}

// Queue pairs of a reserve, with real workers.
class ReserveHeap : public ::testing::Test {
 protected:
  static constexpr char kPool[] = "tenants/t/pools/p";
  static constexpr uint32_t kReady = 512;

  ReserveHeap() {
    settings.name = kPool;
    settings.uid = "one";
    settings.trusted = true;
  }
  void Keep(uint32_t ready_qps) {
    settings.ready_qps = ready_qps;
    host.SetPool(settings);
    const auto reserve = host.server->reserves().Of(*pools().FindPool(kPool));
    while (reserve->ready() != ready_qps || host.server->reserves().refill_due()) host.Turn();
    host.Settle();
  }
  tenant::Registry& pools() { return host.server->services().pools; }
  uint64_t Charged() { return pools().gateway().used(Resource::kHeapBytes); }

  tenant::PoolSettings settings;
  WorkerHost host{2, {}, false};
};

TEST_F(ReserveHeap, ReadyQueuePairs_TakeNoMoreThanTheirPoolIsCharged) {
  Keep(1);
  const size_t allocated = AllocatedBytes();
  const uint64_t charged = Charged();
  Keep(kReady);
  const size_t more = AllocatedBytes() - allocated;
  EXPECT_GT(more, size_t{kReady} * 4096);
  EXPECT_LE(more, Charged() - charged) << more / (kReady - 1) << " bytes each";
}

// A queue pair of the reserve keeps its memory for more requests than the program asked for.
TEST_F(ReserveHeap, ProgramThatTookSmallQueuePairs_IsChargedForLargeOnes) {
  const size_t allocated = AllocatedBytes();
  const uint64_t charged = Charged();
  Keep(kReady);
  auto program = host.Begin(kPool);
  for (uint32_t i = 0; i < kReady / 2; ++i) {
    program.client->CreateQp(program.pd, program.cq, ROCEGW_QPT_RC, 1);
    ASSERT_EQ(program.client->error(), 0);
  }
  const auto reserve = host.server->reserves().Of(*pools().FindPool(kPool));
  ASSERT_EQ(reserve->hits(), kReady / 2);
  Keep(kReady);
  EXPECT_LE(AllocatedBytes() - allocated, Charged() - charged);
}

// Objects of the other kinds, with real workers, which have a part of each.
class WorkerHeap : public ReserveHeap {
 protected:
  WorkerHeap() {
    host.SetPool(settings);
    program.emplace(host.Begin(kPool));
  }
  TestClient& client() { return *program->client; }
  template <typename Message>
  void ExpectCharged(const std::string& kind, const Message& message) {
    constexpr int kObjects = 2000;
    client().Call<rocegw_object_reply>(message);
    ASSERT_EQ(client().error(), 0) << kind;
    const size_t allocated = AllocatedBytes();
    const uint64_t charged = Charged();
    for (int i = 0; i < kObjects; ++i) {
      client().Call<rocegw_object_reply>(message);
      ASSERT_EQ(client().error(), 0) << kind << " " << i;
    }
    host.Settle();
    const size_t more = AllocatedBytes() - allocated;
    EXPECT_GT(more, 0u) << kind;
    EXPECT_LE(more, Charged() - charged)
        << kind << " takes " << more / kObjects << " bytes of heap each, charged "
        << (Charged() - charged) / kObjects;
  }

  std::optional<WorkerHost::Program> program;
};

TEST_F(WorkerHeap, ObjectsOfEachKind_TakeNoMoreThanIsCharged) {
  auto window = client().Request<rocegw_alloc_mw>(ROCEGW_MSG_ALLOC_MW);
  window.pd = program->pd;
  window.type = 2;
  ExpectCharged("memory window", window);
  auto group = client().Request<rocegw_create_group>(ROCEGW_MSG_CREATE_GROUP);
  group.pd = program->pd;
  ExpectCharged("group", group);
  auto srq = client().Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
  srq.pd = program->pd;
  srq.max_wr = srq.max_sge = 1;
  ExpectCharged("shared receive queue", srq);
  ExpectCharged("UD", client().QpRequest(program->pd, program->cq, ROCEGW_QPT_UD, 1));
  ExpectCharged("UC", client().QpRequest(program->pd, program->cq, ROCEGW_QPT_UC, 1));
  auto endpoint = client().QpRequest(program->pd, program->cq, ROCEGW_QPT_ENDPOINT, 1);
  endpoint.service_mode = ROCEGW_SERVICE_UNORDERED;
  ExpectCharged("endpoint", endpoint);
  auto domain = client().Request<rocegw_open_xrcd>(ROCEGW_MSG_OPEN_XRCD);
  domain.context = 1;
  domain.flags = ROCEGW_XRCD_CREATE;
  ExpectCharged("XRC domain", domain);
}

TEST(QueueHeap, SendQueue_TakesNoMoreThanItSays) {
  const size_t before = AllocatedBytes();
  transport::SendQueue queue;
  queue.SetSize(16384, 16);
  EXPECT_LE(AllocatedBytes() - before, transport::SendQueue::HeapBytes(16384, 16) + 4096);
  EXPECT_GE(AllocatedBytes() - before, transport::SendQueue::HeapBytes(16384, 16) * 9 / 10);
}

}  // namespace
}  // namespace rocegw::testing
