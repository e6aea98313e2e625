// SPDX-License-Identifier: Apache-2.0
// Leases, and elections by leases.
#include <condition_variable>
#include <future>
#include <mutex>

#include "controlplane/store/election.h"
#include "tests/support/store/conformance.h"

namespace rocegw::testing {
namespace {

using std::chrono::seconds;
using store::BlockingWatch;
using store::Compare;
using store::Election;
using store::KeyRange;
using store::Operation;
using store::Term;

using Strings = std::vector<std::string>;

TEST_P(StoreConformance, Lease_Ended_TakesItsKeysInOneTransaction) {
  auto lease = store().NewLease(seconds(30), {});
  ASSERT_TRUE(lease.ok()) << lease.status().text();
  EXPECT_TRUE((*lease)->alive());
  const store::LeaseId id = (*lease)->id();
  EXPECT_NE(id, 0);
  Put("a", "1", id);
  Put("b", "1", id);
  Put("stays", "1");
  Put("detached", "1", id);
  const Revision last = Put("detached", "2");
  EXPECT_EQ(Get("a")->lease, id);
  EXPECT_EQ(Get("detached")->lease, 0);

  lease->reset();
  BlockingWatch watch(store(), KeyRange::All(), last + 1);
  EXPECT_EQ(Text(Next(watch)), (Strings{"del a", "del b"}));
  EXPECT_FALSE(Get("a").has_value());
  EXPECT_TRUE(Get("stays").has_value());
  EXPECT_TRUE(Get("detached").has_value());
}

TEST_P(StoreConformance, Lease_Gone_IsNamedByNoPut) {
  auto lease = store().NewLease(seconds(30), {});
  ASSERT_TRUE(lease.ok());
  const store::LeaseId id = (*lease)->id();
  lease->reset();
  const auto result = store().Txn({{}, {Operation::Put("a", "1", id)}, {}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().error(), store::kLeaseGone);
  EXPECT_FALSE(Get("a").has_value());
}

// Collects the reports of an election.
class Terms {
 public:
  std::function<void(const std::optional<Term>&)> Callback() {
    return [this](const std::optional<Term>& term) {
      const std::lock_guard lock(mutex_);
      terms_.push_back(term);
      changed_.notify_all();
    };
  }
  // Waits for the n-th report and returns it.
  std::optional<Term> At(size_t n) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(30), [&] { return terms_.size() > n; }));
    return terms_.size() > n ? terms_[n] : std::nullopt;
  }
  size_t size() {
    const std::lock_guard lock(mutex_);
    return terms_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Term>> terms_;
};

TEST_P(StoreConformance, Election_OneLeads_TheNextFollowsWhenItResigns) {
  Terms first_terms;
  Terms second_terms;
  auto first = std::make_unique<Election>(store(), Election::Options{.candidate = "first"},
                                          first_terms.Callback());
  const auto term = first_terms.At(0);
  ASSERT_TRUE(term.has_value());
  EXPECT_EQ(Get("election/reconciler")->value, "first");
  EXPECT_EQ(Get("election/reconciler")->create_revision, term->epoch);

  Election second(store(), Election::Options{.candidate = "second"}, second_terms.Callback());
  EXPECT_TRUE(Must({{term->fence}, {Operation::Put("work", "of the first")}, {}}).succeeded);
  EXPECT_FALSE(second.term().has_value());
  EXPECT_EQ(second_terms.size(), 0u);

  first.reset();
  const auto next = second_terms.At(0);
  ASSERT_TRUE(next.has_value());
  EXPECT_GT(next->epoch, term->epoch);
  EXPECT_EQ(second.term(), next);
  EXPECT_FALSE(first_terms.At(1).has_value()) << "told that its term has ended";
  EXPECT_FALSE(Must({{term->fence}, {Operation::Put("work", "of the first, late")}, {}}).succeeded);
  EXPECT_TRUE(Must({{next->fence}, {Operation::Put("work", "of the second")}, {}}).succeeded);
  EXPECT_EQ(Get("work")->value, "of the second");
}

TEST_P(StoreConformance, Election_KeyTakenAway_BeginsANewTerm) {
  Terms terms;
  Election election(store(), Election::Options{.candidate = "only"}, terms.Callback());
  const auto term = terms.At(0);
  ASSERT_TRUE(term.has_value());
  Delete("election/reconciler");
  const auto next = terms.At(1);
  ASSERT_TRUE(next.has_value());
  EXPECT_GT(next->epoch, term->epoch);
  EXPECT_FALSE(Must({{term->fence}, {}, {}}).succeeded);
}

}  // namespace
}  // namespace rocegw::testing
