// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/writes/writer.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <utility>

#include "controlplane/model/serialized.h"
#include "controlplane/store/local/memory_store.h"
#include "rocegw/types/v1/tenant.pb.h"
#include "tests/support/store/forwarding_store.h"

namespace rocegw::api {
namespace {

// Store that counts transactions by whether the caller may wait for the disk.
class CountingStore final : public rocegw::testing::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  void TxnAsync(store::Transaction transaction, TxnDone done) override {
    ++handed_over;
    ForwardingStore::TxnAsync(std::move(transaction), std::move(done));
  }
  void TxnHere(store::Transaction transaction, TxnDone done) override {
    ++here;
    ForwardingStore::TxnHere(std::move(transaction), std::move(done));
  }

  int here = 0;
  int handed_over = 0;
};

TEST(Writer, FirstTryMayWaitForTheDisk_LaterOnesRunOnTheFollowerAndMustNot) {
  const auto memory = store::NewMemoryStore();
  CountingStore store(*memory);
  const auto follower = std::move(*sync::FleetFollower::Start(store));
  Writer writer(store, *follower);
  types::v1::Tenant tenant;
  tenant.set_name("tenants/a");
  int plans = 0;
  const auto plan = [&](const sync::Fleet&) -> PlanOrError {
    Plan planned;
    planned.name = model::NameOf(tenant.name());
    planned.intent = model::Serialized(tenant);
    // The object was deleted by another caller meanwhile.
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
