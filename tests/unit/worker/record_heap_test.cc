// SPDX-License-Identifier: Apache-2.0
// Heap of messages that arrive in pieces: what a pool pays, when it is refused, when it pays less.
#include "gateway/worker/objects/record_heap.h"

#include <gtest/gtest.h>

#include <memory>

#include "gateway/tenant/quota_node.h"
#include "gateway/worker/objects/worker_session.h"

namespace rocegw::testing::record_heap {
namespace {

using namespace worker;  // NOLINT(google-build-using-namespace)
using tenant::Resource;

constexpr size_t kFree = RecordHeap::kFree;
constexpr size_t kStep = RecordHeap::kStep;

// Queue pair with nothing but records.
class RecordingQueuePair final : public transport::QueuePair {
 public:
  size_t records_bytes() const override { return records; }
  TimePoint deadline() const override { return kNever; }

  size_t records = 0;

 protected:
  bool DoReset() override { return true; }
  bool Drained() const override { return true; }
  void DoFlush(transport::Outbox&) override {}
  transport::PumpResult DoPump(transport::Outbox&, TimePoint, transport::PumpBudget&) override {
    return transport::PumpResult::kIdle;
  }
  metrics::DropReason DoPacket(transport::Outbox&, const wire::RxPacket&, TimePoint) override {
    return metrics::DropReason::kNone;
  }
  void DoMemoryDone(transport::Outbox&) override {}
  void DoMemoryFault(transport::Outbox&, const transport::AccessTag&) override {}
  void DoDeadline(transport::Outbox&, TimePoint) override {}
};

class RecordHeapTest : public ::testing::Test {
 protected:
  RecordHeapTest() {
    share_.quota = &quota_;
    session_.account = scheduler_.Open(&share_);
    for (QpSlot* slot : {&first_, &second_}) {
      slot->qp = std::make_unique<RecordingQueuePair>();
      slot->session = &session_;
    }
  }
  ~RecordHeapTest() override {
    RecordHeap::Remove(first_);
    RecordHeap::Remove(second_);
    EXPECT_EQ(Paid(), 0u);
    scheduler_.Close(session_.account);
  }

  void SetLimit(uint64_t bytes) {
    tenant::Quota quota;
    quota.peak[Resource::kHeapBytes] = bytes;
    quota_.SetQuota(quota);
  }
  static void Set(QpSlot& slot, size_t records) {
    static_cast<RecordingQueuePair&>(*slot.qp).records = records;
    RecordHeap::Update(slot);
  }
  uint64_t Paid() const { return quota_.used(Resource::kHeapBytes); }
  bool MayGrow() { return RecordHeap::MayGrow(*session_.account->of_pool); }

  tenant::QuotaNode gateway_{"gateway", tenant::Level::kGateway, nullptr};
  tenant::QuotaNode tenant_{"t", tenant::Level::kTenant, &gateway_};
  tenant::QuotaNode quota_{"p", tenant::Level::kPool, &tenant_};
  tenant::Share root_{nullptr};
  tenant::Share of_tenant_{&root_};
  tenant::Share share_{&of_tenant_};
  Scheduler scheduler_{nullptr, 0};
  WorkerSession session_;
  QpSlot first_;
  QpSlot second_;
};

TEST_F(RecordHeapTest, FreePart_IsOfThePool_NotOfEachQueuePair) {
  Set(first_, kFree);
  EXPECT_EQ(Paid(), 0u);
  Set(second_, 1);
  EXPECT_EQ(Paid(), kStep);
  Set(second_, kStep);
  EXPECT_EQ(Paid(), kStep) << "charged in steps";
  Set(second_, kStep + 1);
  EXPECT_EQ(Paid(), 2 * kStep);
}

TEST_F(RecordHeapTest, LessRecords_AreGivenBack_WithAStepAsSlack) {
  Set(first_, kFree + 4 * kStep);
  Set(first_, kFree + 3 * kStep);
  EXPECT_EQ(Paid(), 4 * kStep);
  Set(first_, kFree + 2 * kStep);
  EXPECT_EQ(Paid(), 2 * kStep);
  Set(first_, kFree);
  EXPECT_EQ(Paid(), 0u);
}

TEST_F(RecordHeapTest, Refused_UntilThereIsHeapAgain) {
  SetLimit(kStep);
  Set(first_, kFree + kStep);
  EXPECT_TRUE(MayGrow());
  Set(second_, 1);
  EXPECT_FALSE(MayGrow());
  EXPECT_EQ(Paid(), kStep);
  SetLimit(2 * kStep);
  EXPECT_TRUE(MayGrow());
  EXPECT_EQ(Paid(), 2 * kStep);
}

TEST_F(RecordHeapTest, Refused_UntilRecordsHaveEnded) {
  SetLimit(kStep);
  Set(first_, kFree + kStep);
  Set(second_, 1);
  EXPECT_FALSE(MayGrow());
  Set(first_, kFree);
  EXPECT_TRUE(MayGrow());
}

}  // namespace
}  // namespace rocegw::testing::record_heap
