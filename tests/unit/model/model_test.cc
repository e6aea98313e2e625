// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "controlplane/model/check.h"
#include "controlplane/model/field_mask.h"
#include "controlplane/model/formats.h"
#include "controlplane/model/label_selector.h"
#include "controlplane/model/resource_name.h"
#include "controlplane/model/serialized.h"
#include "rocegw/admin/v1/pools.pb.h"

namespace rocegw::model {
namespace {

using admin::v1::UpdatePoolRequest;
using types::v1::Pool;

std::vector<std::string> Fields(const std::vector<Violation>& violations) {
  std::vector<std::string> fields;
  for (const Violation& violation : violations) fields.push_back(violation.field);
  return fields;
}

UpdatePoolRequest GoodRequest() {
  UpdatePoolRequest request;
  request.mutable_pool()->set_name("tenants/acme/pools/gold");
  request.mutable_pool()->mutable_spec()->set_weight(3);
  return request;
}

TEST(ResourceName, Parse_EveryCollection_RoundTrips) {
  for (const char* text : {"tenants/a", "tenants/a/pools/b", "ccPolicies/c-1", "gateways/host-7",
                           "roleBindings/r", "operations/o", "gateways/g/donors/d"}) {
    const auto name = ParseResourceName(text);
    ASSERT_TRUE(name.has_value()) << text;
    EXPECT_EQ(name->Text(), text);
  }
  EXPECT_EQ(ParseResourceName("tenants/a/pools/b")->Tenant(), "tenants/a");
  EXPECT_EQ(ParseResourceName("gateways/a")->Tenant(), "");
}

TEST(ResourceName, Parse_NotAName_IsRefused) {
  const std::string long_id(31, 'a');
  for (const std::string& text :
       {std::string(), std::string("tenants"), std::string("tenants/"), std::string("tenants/A"),
        std::string("tenants/a/pools"), std::string("pools/b"), std::string("tenants/a/gateways/b"),
        std::string("tenants/-a"), std::string("tenants/a-"), "tenants/" + long_id,
        std::string("tenants/-"), std::string("gateways/a/b"),
        std::string("tenants/a/pools/b/c")}) {
    EXPECT_FALSE(ParseResourceName(text).has_value()) << text;
  }
  EXPECT_TRUE(ParseResourceName("gateways/" + long_id).has_value());
  EXPECT_TRUE(ParseResourceName("tenants/-/pools/-", true).has_value());
}

TEST(Check, GoodRequest_HasNoViolations) { EXPECT_TRUE(Check(GoodRequest()).empty()); }

TEST(Check, EachRule_NamesItsField) {
  UpdatePoolRequest request = GoodRequest();
  request.mutable_pool()->set_name("tenants/acme/pools/Gold");
  auto& spec = *request.mutable_pool()->mutable_spec();
  spec.set_slots(5000);
  spec.set_cc_policy("policies/x");
  spec.add_addresses("192.0.2.1");
  spec.add_addresses("192.0.2.300");
  spec.add_addresses("192.0.2.1");
  spec.add_allowed_peers("192.0.2.0/23");
  spec.add_allowed_peers("192.0.2.0/33");
  spec.mutable_attach()->set_identity(static_cast<types::v1::Identity>(77));
  spec.mutable_attach()->add_service_accounts();
  spec.mutable_quota()->mutable_peak()->set_qps(1ull << 40);
  (*request.mutable_pool()->mutable_meta()->mutable_labels())["no good"] = "x";
  (*request.mutable_pool()->mutable_meta()->mutable_labels())["good"] = "not good!";
  request.set_request_id("7");
  EXPECT_EQ(
      Fields(Check(request)),
      (std::vector<std::string>{
          "pool.name", "pool.meta.labels[good]", "pool.meta.labels[no good]",
          "pool.spec.quota.peak.qps", "pool.spec.slots", "pool.spec.attach.identity",
          "pool.spec.attach.service_accounts[0]", "pool.spec.cc_policy", "pool.spec.addresses[1]",
          "pool.spec.addresses[2]", "pool.spec.allowed_peers[1]", "request_id"}));
}

TEST(Check, RequiredMessageMissing_IsSaid) {
  const auto violations = Check(UpdatePoolRequest());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0], (Violation{"pool", "must be given"}));
}

TEST(Check, UnknownField_IsRefusedAtAnyDepth) {
  UpdatePoolRequest request = GoodRequest();
  auto* attach = request.mutable_pool()->mutable_spec()->mutable_attach();
  attach->GetReflection()->MutableUnknownFields(attach)->AddVarint(999, 1);
  const auto violations = Check(request);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].field, "pool.spec.attach");
  EXPECT_NE(violations[0].text.find("999"), std::string::npos);
}

TEST(Check, OutputOnlyFields_AreNotLookedAtAndCanBeCleared) {
  Pool pool = GoodRequest().pool();
  pool.mutable_status()->set_gateways_applied(7);
  pool.mutable_meta()->set_uid("x");
  pool.mutable_meta()->set_etag("7");
  EXPECT_TRUE(Check(pool).empty());
  ClearOutputOnly(pool);
  EXPECT_FALSE(pool.has_status());
  EXPECT_EQ(pool.meta().uid(), "");
  EXPECT_EQ(pool.meta().etag(), "7");
}

TEST(Check, ImmutableFieldThatDiffers_IsSaid) {
  Pool before = GoodRequest().pool();
  Pool after = before;
  EXPECT_TRUE(CheckImmutable(before, after).empty());
  after.set_name("tenants/acme/pools/silver");
  EXPECT_EQ(Fields(CheckImmutable(before, after)), std::vector<std::string>{"name"});
}

TEST(Check, GuardedFieldThatDiffers_IsSaidWithItsPermission) {
  Pool before = GoodRequest().pool();
  Pool after = before;
  after.mutable_spec()->set_slots(before.spec().slots() + 1);
  EXPECT_TRUE(GuardedChanges(before, after).empty());
  after.mutable_spec()->mutable_memory()->set_trusted(!before.spec().memory().trusted());
  after.mutable_spec()->add_addresses("192.0.2.77");
  for (const auto& [from, to] : {std::pair(before, after), std::pair(after, before)}) {
    const std::vector<GuardedChange> changes = GuardedChanges(from, to);
    ASSERT_EQ(changes.size(), 2u);
    EXPECT_EQ(changes[0].field, "spec.addresses");
    EXPECT_EQ(changes[0].permission, "pools.assign");
    EXPECT_EQ(changes[1].field, "spec.memory.trusted");
    EXPECT_EQ(changes[1].permission, "pools.trust");
  }
  after.clear_spec();
  EXPECT_TRUE(GuardedChanges(after, Pool()).empty());
}

TEST(Formats, Prefix_BitsBeyondIt_AreRefused) {
  EXPECT_EQ(MismatchWithFormat("192.0.2.0/24", types::v1::IP_PREFIX), "");
  EXPECT_EQ(MismatchWithFormat("2001:db8::/32", types::v1::IP_PREFIX), "");
  EXPECT_EQ(MismatchWithFormat("0.0.0.0/0", types::v1::IP_PREFIX), "");
  for (const char* text : {"192.0.2.1/24", "192.0.2.0", "192.0.2.0/", "192.0.2.0/33",
                           "192.0.2.0/24x", "::1/64", "/8"}) {
    EXPECT_NE(MismatchWithFormat(text, types::v1::IP_PREFIX), "") << text;
  }
}

TEST(Formats, LabelKeys_AreThoseOfKubernetes) {
  for (const char* text : {"app", "example.com/app", "a.b_c-d", "A9"})
    EXPECT_TRUE(IsLabelKey(text)) << text;
  for (const char* text : {"", "-a", "a-", "a/b/c", "/a", "a/", "Example.com/a", "a b"}) {
    EXPECT_FALSE(IsLabelKey(text)) << text;
  }
}

TEST(FieldMask, NamedFields_AreTakenAndOthersKept) {
  Pool stored = GoodRequest().pool();
  stored.mutable_spec()->set_slots(8);
  stored.mutable_spec()->add_addresses("192.0.2.1");
  Pool update;
  update.mutable_spec()->set_weight(9);
  google::protobuf::FieldMask mask;
  mask.add_paths("spec.weight");
  mask.add_paths("spec.addresses");
  EXPECT_TRUE(Merge(update, mask, stored).empty());
  EXPECT_EQ(stored.spec().weight(), 9u);
  EXPECT_EQ(stored.spec().slots(), 8u);
  EXPECT_EQ(stored.spec().addresses_size(), 0) << "named and empty means emptied";
}

TEST(FieldMask, None_MeansSpecAndLabels) {
  Pool stored = GoodRequest().pool();
  stored.mutable_spec()->set_slots(8);
  stored.mutable_meta()->set_uid("u");
  stored.mutable_status()->set_gateways_selected(4);
  (*stored.mutable_meta()->mutable_labels())["old"] = "1";
  Pool update;
  update.mutable_spec()->set_weight(9);
  (*update.mutable_meta()->mutable_labels())["new"] = "1";
  EXPECT_TRUE(Merge(update, {}, stored).empty());
  EXPECT_EQ(stored.spec().slots(), 0u);
  EXPECT_EQ(stored.meta().labels().count("old"), 0u);
  EXPECT_EQ(stored.meta().labels().count("new"), 1u);
  EXPECT_EQ(stored.meta().uid(), "u");
  EXPECT_EQ(stored.status().gateways_selected(), 4u);
}

TEST(FieldMask, PathThatIsNoFieldOrNotTheClients_ChangesNothing) {
  Pool stored = GoodRequest().pool();
  const Pool before = stored;
  google::protobuf::FieldMask mask;
  mask.add_paths("spec.weight");
  mask.add_paths("spec.wait");
  mask.add_paths("status");
  mask.add_paths("meta.uid");
  EXPECT_EQ(Fields(Merge(Pool(), mask, stored)),
            (std::vector<std::string>{"update_mask.paths[1]", "update_mask.paths[2]",
                                      "update_mask.paths[3]"}));
  EXPECT_EQ(stored.SerializeAsString(), before.SerializeAsString());
}

TEST(LabelSelector, Terms_AllMustHold) {
  Labels labels;
  labels["tier"] = "gold";
  labels["zone"] = "a";
  for (const char* text : {"", "tier=gold", "tier", "tier=gold,zone!=b", "!old", "missing!=x"}) {
    EXPECT_TRUE(LabelSelector::Parse(text)->Matches(labels)) << text;
  }
  for (const char* text : {"tier=silver", "old", "!tier", "tier=gold,zone=b", "tier!=gold"}) {
    EXPECT_FALSE(LabelSelector::Parse(text)->Matches(labels)) << text;
  }
  for (const char* text : {"=", ",tier", "tier=a b", "a=b=c", "!"}) {
    EXPECT_FALSE(LabelSelector::Parse(text).has_value()) << text;
  }
}

TEST(GatewaySelector, WithoutLabelsNamesOrAll_SelectsNone) {
  types::v1::Gateway gateway;
  gateway.set_name("gateways/a");
  (*gateway.mutable_meta()->mutable_labels())["zone"] = "a";
  types::v1::GatewaySelector selector;
  EXPECT_FALSE(Selects(selector, gateway));
  selector.add_names("gateways/a");
  EXPECT_TRUE(Selects(selector, gateway));
  selector.set_names(0, "gateways/b");
  EXPECT_FALSE(Selects(selector, gateway));
  (*selector.mutable_labels())["zone"] = "a";
  EXPECT_TRUE(Selects(selector, gateway));
  (*selector.mutable_labels())["rack"] = "7";
  EXPECT_FALSE(Selects(selector, gateway));
  selector.set_all(true);
  EXPECT_TRUE(Selects(selector, gateway));
}

TEST(Serialized, MapsFilledInAnotherOrder_AreTheSameBytes) {
  Pool forth;
  Pool back;
  for (int i = 0; i < 30; ++i) {
    (*forth.mutable_meta()->mutable_labels())["label" + std::to_string(i)] = "value";
    (*back.mutable_meta()->mutable_labels())["label" + std::to_string(29 - i)] = "value";
  }
  EXPECT_EQ(Serialized(forth), Serialized(back));
  Pool read;
  ASSERT_TRUE(read.ParseFromString(Serialized(forth)));
  EXPECT_EQ(read.meta().labels_size(), 30);
}

}  // namespace
}  // namespace rocegw::model
