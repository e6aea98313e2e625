// SPDX-License-Identifier: Apache-2.0
// Charges for heap are upper bounds: the allocator gives objects of a kind no more than their pool
// is charged.
#include <gtest/gtest.h>
#include <malloc.h>

#include <functional>
#include <string>

#include "gateway/transport/queues/receive_queue.h"
#include "gateway/transport/queues/send_queue.h"
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

TEST(QueueHeap, SendQueue_TakesNoMoreThanItSays) {
  const size_t before = AllocatedBytes();
  transport::SendQueue queue;
  queue.SetSize(16384, 16);
  EXPECT_LE(AllocatedBytes() - before, transport::SendQueue::HeapBytes(16384, 16) + 4096);
  EXPECT_GE(AllocatedBytes() - before, transport::SendQueue::HeapBytes(16384, 16) * 9 / 10);
}

}  // namespace
}  // namespace rocegw::testing
