// SPDX-License-Identifier: Apache-2.0
// A queue pair from a reserve allocates nothing on its way to RTS: allocations are counted while
// the gateway runs.
#include <gtest/gtest.h>

#include "tests/support/allocation_counts.h"
#include "tests/support/session/worker_host.h"

namespace rocegw::testing {
namespace {

constexpr char kPool[] = "tenants/t/pools/p";
constexpr uint32_t kReady = 40;  // more than one pair of chunks holds
constexpr uint32_t kDepth = 128;

class ReadyAllocations : public ::testing::Test {
 protected:
  void Start(uint32_t ready_qps) {
    session::Options options;
    // The refill is not counted here.
    options.refill_after = Seconds(3600);
    host_.emplace(2, options, false);
    tenant::PoolSettings pool;
    pool.name = kPool;
    pool.trusted = true;
    pool.ready_qps = ready_qps;
    host_->SetPool(pool);
    // The last refill step finds nothing to do. While it is due, a use does not postpone it.
    while (host_->server->reserves().refill_due()) host_->Turn();
    if (ready_qps != 0) {
      ASSERT_EQ(Reserve()->ready(), ready_qps);
      ASSERT_EQ(Reserve()->bytes(), tenant::ReserveBytes(ready_qps));
    }
    program_ = host_->Begin(kPool);
    ASSERT_EQ(program_.client->error(), 0);
    // The test's side of the connection may allocate.
    counted_ = std::make_unique<TestClient>(
        [this] {
          AllocationCounts::Start();
          host_->Settle();
          AllocationCounts::Stop();
        },
        program_.client->Release());
    AllocationCounts::Reset();
  }
  std::shared_ptr<session::ReadyReserve> Reserve() {
    return host_->server->reserves().Of(*host_->server->services().pools.FindPool(kPool));
  }
  // Returns the allocations for one queue pair until it can send.
  AllocationCounts SetUpOne() {
    AllocationCounts::Reset();
    const auto qp = counted_->CreateQp(program_.pd, program_.cq, ROCEGW_QPT_RC, kDepth);
    EXPECT_EQ(counted_->error(), 0);
    EXPECT_EQ(WorkerHost::Connect(*counted_, qp.handle), 0);
    const AllocationCounts counts = AllocationCounts::Read();
    auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
    query.handle = qp.handle;
    EXPECT_EQ(counted_->Call<rocegw_query_qp_reply>(query).attr.qp_state,
              static_cast<uint32_t>(verbs::QpState::kRts));
    return counts;
  }

  std::optional<WorkerHost> host_;
  WorkerHost::Program program_;
  std::unique_ptr<TestClient> counted_;
};

TEST_F(ReadyAllocations, WithinTheReserve_None) {
  Start(kReady);
  for (uint32_t i = 0; i < kReady; ++i) EXPECT_EQ(SetUpOne(), AllocationCounts()) << i;
  EXPECT_EQ(Reserve()->hits(), kReady);
  EXPECT_EQ(Reserve()->misses(), 0u);
  EXPECT_EQ(Reserve()->ready(), 0u);
}

TEST_F(ReadyAllocations, BeyondTheReserve_Some) {
  Start(1);
  EXPECT_EQ(SetUpOne(), AllocationCounts());
  EXPECT_GT(SetUpOne().allocations, 0u);
  EXPECT_EQ(Reserve()->misses(), 1u);
}

TEST_F(ReadyAllocations, WithoutReserve_Some) {
  Start(0);
  AllocationCounts all;
  for (uint32_t i = 0; i < kReady; ++i) {
    const AllocationCounts counts = SetUpOne();
    all.allocations += counts.allocations;
    all.mappings += counts.mappings;
    all.files += counts.files;
  }
  EXPECT_GT(all.allocations, kReady);
  EXPECT_GT(all.mappings, 0u);
  EXPECT_GT(all.files, 0u);
}

}  // namespace
}  // namespace rocegw::testing
