// SPDX-License-Identifier: Apache-2.0
// Plans as transactions of a real (memory) store: successes, refusals, and the contents of
// refusals.
#include "controlplane/api/writes/write.h"

#include <gtest/gtest.h>

#include "controlplane/model/stored.h"
#include "controlplane/store/local/memory_store.h"

namespace rocegw::api {
namespace {

class WriteTest : public ::testing::Test {
 protected:
  static Plan Create(const std::string& name) {
    return {.name = model::ParseResourceName(name).value(),
            .intent = "new",
            .replaces = 0,
            .needs = {},
            .guards = {}};
  }
  static std::string KeyOfRequest(const std::string& request_id) {
    Call call;
    call.principal = "p";
    call.request_id = request_id;
    return RequestKey(call);
  }
  Records NewRecords(const std::string& request_id = {}) {
    Records records;
    if (!request_id.empty()) {
      records.request_key = KeyOfRequest(request_id);
      records.request.set_method("m");
      records.request.set_intent("new");
    }
    records.audit_key = "audit/" + std::to_string(++audited_);
    return records;
  }
  store::TransactionResult Run(const Plan& plan, const Records& records) {
    auto result = store_->Txn(ToTransaction(plan, records));
    EXPECT_TRUE(result.ok()) << result.status().text();
    return result.ok() ? *result : store::TransactionResult();
  }
  bool Has(const std::string& key) { return store_->Get(key).value().has_value(); }

  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  int audited_ = 0;
};

TEST_F(WriteTest, Create_PutsObjectAnswerAndAuditInOneRevision) {
  const auto result = Run(Create("tenants/a"), NewRecords("id"));
  ASSERT_TRUE(result.succeeded);
  for (const std::string& key :
       {std::string("intent/tenants/a"), KeyOfRequest("id"), std::string("audit/1")}) {
    const auto entry = store_->Get(key).value();
    ASSERT_TRUE(entry.has_value()) << key;
    EXPECT_EQ(entry->mod_revision, result.revision) << key;
  }
}

TEST_F(WriteTest, CreateOfWhatIsThere_ChangesNothingAndTellsItsRevision) {
  const auto first = Run(Create("tenants/a"), NewRecords());
  const Plan plan = Create("tenants/a");
  const Records records = NewRecords("id");
  const auto second = Run(plan, records);
  EXPECT_FALSE(second.succeeded);
  EXPECT_EQ(WhyRefused(plan, records, second).is, first.revision);
  EXPECT_FALSE(Has(KeyOfRequest("id")));
  EXPECT_FALSE(Has("audit/2"));
}

TEST_F(WriteTest, SameRequestTwice_IsAnsweredFromTheFirst) {
  const auto first = Run(Create("tenants/a"), NewRecords("id"));
  const Plan plan = Create("tenants/a");
  const Records records = NewRecords("id");
  const Refused refused = WhyRefused(plan, records, Run(plan, records));
  ASSERT_TRUE(refused.answered.has_value());
  EXPECT_EQ(refused.answered_at, first.revision);
  EXPECT_EQ(refused.answered->intent(), "new");
}

TEST_F(WriteTest, ParentThatIsNotThere_IsNamed) {
  Plan plan = Create("tenants/a/pools/p");
  plan.needs = {"tenants/a", "ccPolicies/c"};
  Run(Create("tenants/a"), NewRecords());
  const Records records = NewRecords();
  EXPECT_EQ(WhyRefused(plan, records, Run(plan, records)).missing,
            std::vector<std::string>{"ccPolicies/c"});
  Run(Create("ccPolicies/c"), NewRecords());
  EXPECT_TRUE(Run(plan, NewRecords()).succeeded);
}

TEST_F(WriteTest, Guards_LetOnlyOneOfTwoPass) {
  Plan one = Create("tenants/a");
  Plan two = Create("tenants/b");
  one.guards = two.guards = {{.key = "guard/capacity", .revision = 0}};
  const auto result = Run(one, NewRecords());
  EXPECT_TRUE(result.succeeded);
  EXPECT_FALSE(Run(two, NewRecords()).succeeded);
  two.guards[0].revision = result.revision;
  EXPECT_TRUE(Run(two, NewRecords()).succeeded);
}

TEST_F(WriteTest, Delete_TakesTheStatusWithIt) {
  const auto created = Run(Create("gateways/g"), NewRecords());
  ASSERT_TRUE(store_
                  ->Txn({.compares = {},
                         .then = {store::Operation::Put("status/gateways/g", "s")},
                         .otherwise = {}})
                  .ok());
  Plan plan = Create("gateways/g");
  plan.intent.reset();
  EXPECT_FALSE(Run(plan, NewRecords()).succeeded) << "another revision than the one that was read";
  plan.replaces = created.revision;
  EXPECT_TRUE(Run(plan, NewRecords()).succeeded);
  EXPECT_FALSE(Has("intent/gateways/g"));
  EXPECT_FALSE(Has("status/gateways/g"));
}

}  // namespace
}  // namespace rocegw::api
