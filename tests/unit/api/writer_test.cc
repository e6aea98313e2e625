// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/writer.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <utility>

#include "controlplane/model/serialized.h"
#include "controlplane/store/memory_store.h"
#include "rocegw/types/v1/tenant.pb.h"

namespace rocegw::api {
namespace {

// Counts by whether the caller was ready to wait for the disk.
class CountingStore final : public store::Store {
 public:
  const std::string& uuid() const override { return store_->uuid(); }
  std::string_view backend() const override { return store_->backend(); }
  void TxnAsync(store::Transaction transaction, TxnDone done) override {
    ++handed_over;
    store_->TxnAsync(std::move(transaction), std::move(done));
  }
  void TxnHere(store::Transaction transaction, TxnDone done) override {
    ++here;
    store_->TxnHere(std::move(transaction), std::move(done));
  }
  void RangeAsync(store::RangeRequest request, RangeDone done) override {
    store_->RangeAsync(std::move(request), std::move(done));
  }
  StatusOr<std::unique_ptr<store::Watch>> NewWatch(store::KeyRange range, store::Revision from,
                                                   std::function<void()> ready) override {
    return store_->NewWatch(std::move(range), from, std::move(ready));
  }
  Status Compact(store::Revision revision) override { return store_->Compact(revision); }
  StatusOr<std::unique_ptr<store::Lease>> NewLease(std::chrono::seconds time_to_live,
                                                   std::function<void()> lost) override {
    return store_->NewLease(time_to_live, std::move(lost));
  }

  int here = 0;
  int handed_over = 0;

 private:
  const std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
};

TEST(Writer, FirstTryMayWaitForTheDisk_LaterOnesRunOnTheFollowerAndMustNot) {
  CountingStore store;
  const auto follower = std::move(*sync::FleetFollower::Start(store));
  Writer writer(store, *follower);
  types::v1::Tenant tenant;
  tenant.set_name("tenants/a");
  int plans = 0;
  const auto plan = [&](const sync::Fleet&) -> PlanOrError {
    Plan planned;
    planned.name = model::NameOf(tenant.name());
    planned.intent = model::Serialized(tenant);
    // What somebody else has deleted meanwhile.
    planned.replaces = ++plans == 1 ? 7 : 0;
    return planned;
  };
  std::promise<bool> written;
  writer.Write({.principal = "p", .method = "m"}, 0, plan, [&](const WrittenOrError& outcome) {
    written.set_value(std::holds_alternative<Written>(outcome));
  });
  EXPECT_TRUE(written.get_future().get());
  EXPECT_EQ(plans, 2);
  EXPECT_EQ(store.here, 1);
  EXPECT_EQ(store.handed_over, 1);
}

}  // namespace
}  // namespace rocegw::api
