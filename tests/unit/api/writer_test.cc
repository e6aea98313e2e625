// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/writes/writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "controlplane/api/writes/standard_methods.h"
#include "controlplane/model/serialized.h"
#include "controlplane/model/stored.h"
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

// Store whose reads fail, or whose watches show no change, while the test says so.
class PartedStore final : public rocegw::testing::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  void RangeAsync(store::RangeRequest request, RangeDone done) override {
    if (unreadable) return done(Status(store::kUnavailable, "no member answers"));
    ForwardingStore::RangeAsync(std::move(request), std::move(done));
  }
  StatusOr<std::unique_ptr<store::Watch>> NewWatch(store::KeyRange range, store::Revision from,
                                                   std::function<void()> ready) override {
    ready_ = ready;
    auto watch = ForwardingStore::NewWatch(std::move(range), from, std::move(ready));
    if (!watch.ok()) return watch.status();
    return std::unique_ptr<store::Watch>(std::make_unique<LateWatch>(blind_, std::move(*watch)));
  }

  void SetBlind(bool blind) {
    blind_ = blind;
    ready_();
  }

  std::atomic<bool> unreadable{false};

 private:
  class LateWatch final : public store::Watch {
   public:
    LateWatch(const std::atomic<bool>& blind, std::unique_ptr<store::Watch> watch)
        : blind_(blind), watch_(std::move(watch)) {}
    StatusOr<std::optional<store::Changes>> TryNext() override {
      if (blind_) return std::optional<store::Changes>();
      return watch_->TryNext();
    }

   private:
    const std::atomic<bool>& blind_;
    std::unique_ptr<store::Watch> watch_;
  };

  std::atomic<bool> blind_{false};
  std::function<void()> ready_;
};

// Writes as another controller does.
void CreateElsewhere(store::Store& store, const std::string& name) {
  types::v1::Tenant tenant;
  tenant.set_name(name);
  store::Transaction transaction;
  transaction.then.push_back(store::Operation::Put(
      model::KeyOf(model::Part::kIntent, model::NameOf(name)), model::Serialized(tenant)));
  ASSERT_TRUE(store.Txn(std::move(transaction)).ok());
}

PlanOrError PlanDeletion(const sync::Fleet& fleet) {
  return PlanDelete<types::v1::Tenant>(fleet, "tenants/a", {});
}

std::string CodeOf(const WrittenOrError& outcome) {
  const auto* const error = std::get_if<ApiError>(&outcome);
  return error == nullptr ? "" : error->reason;
}

class WriterBehind : public ::testing::TestWithParam<const char*> {
 protected:
  std::future<std::string> Delete() {
    auto outcome = std::make_shared<std::promise<std::string>>();
    writer.Write({.principal = "p", .method = "m", .request_id = GetParam()}, 0, PlanDeletion,
                 [outcome](const WrittenOrError& done) { outcome->set_value(CodeOf(done)); });
    return outcome->get_future();
  }

  std::unique_ptr<store::Store> memory = store::NewMemoryStore();
  PartedStore store{*memory};
  std::unique_ptr<sync::FleetFollower> follower = std::move(*sync::FleetFollower::Start(store));
  Writer writer{store, *follower};
};

TEST_P(WriterBehind, TheStore_SeesWhatAnotherControllerWrote) {
  store.SetBlind(true);
  CreateElsewhere(*memory, "tenants/a");
  std::future<std::string> outcome = Delete();
  store.SetBlind(false);
  EXPECT_EQ(outcome.get(), "");
}

TEST_P(WriterBehind, AnUnreadableStore_SaysSo) {
  store.unreadable = true;
  EXPECT_EQ(Delete().get(), "STORE_UNAVAILABLE");
}

TEST_P(WriterBehind, Nothing_RefusesWhatIsNotThere) {
  CreateElsewhere(*memory, "tenants/b");
  EXPECT_EQ(Delete().get(), "NOT_FOUND");
}

INSTANTIATE_TEST_SUITE_P(RequestId, WriterBehind,
                         ::testing::Values("", "11111111-0000-4000-8000-000000000000"),
                         [](const auto& one) { return *one.param == 0 ? "Without" : "With"; });

}  // namespace
}  // namespace rocegw::api
