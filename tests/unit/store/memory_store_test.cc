// SPDX-License-Identifier: Apache-2.0
// The store in memory follows the contract; tests of its own functions.
#include "controlplane/store/local/memory_store.h"

#include <future>

#include "controlplane/store/election.h"
#include "tests/support/store/conformance.h"

namespace rocegw::testing {
namespace {

class MemoryHost : public StoreHost {
 public:
  store::Store& store() override { return *store_; }

 private:
  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance,
                         ::testing::Values(StoreBackend{
                             "memory", [] { return std::make_unique<MemoryHost>(); }}),
                         BackendName);

TEST(MemoryStore, ExpireLease_OfALeader_EndsItsTermAndBeginsAnother) {
  const auto store = store::NewMemoryStore();
  std::promise<store::Term> first_term;
  std::promise<void> ended;
  std::promise<store::Term> second_term;
  int calls = 0;
  store::Election election(*store, {.candidate = "one"},
                           [&](const std::optional<store::Term>& term) {
                             ++calls;
                             if (calls == 1) first_term.set_value(*term);
                             if (calls == 2 && !term.has_value()) ended.set_value();
                             if (calls == 3) second_term.set_value(*term);
                           });
  const store::Term first = first_term.get_future().get();
  store->ExpireLease(store->Get("election/reconciler")->value().lease);
  ended.get_future().get();
  EXPECT_GT(second_term.get_future().get().epoch, first.epoch);
  EXPECT_FALSE(store->Txn({{first.fence}, {}, {}})->succeeded);
}

TEST(MemoryStore, Uuid_DiffersBetweenStores) {
  EXPECT_NE(store::NewMemoryStore()->uuid(), store::NewMemoryStore()->uuid());
}

}  // namespace
}  // namespace rocegw::testing
