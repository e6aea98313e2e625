// SPDX-License-Identifier: Apache-2.0
// API and gateway accept the same values: every field of a push is set to values around its bounds,
// in the form that clients write, and judged by both.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "controlplane/controllers/gateway_config.h"
#include "controlplane/model/check.h"
#include "gateway/apply/settings_reader.h"
#include "tests/support/fleet_fixture.h"

namespace rocegw::apply {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using types::v1::CcPolicy;
using types::v1::Gateway;
using types::v1::Pool;
using types::v1::Tenant;

// Returns the form that the controller pushes.
template <typename Object>
types::v1::ConfigObject Pushed(const Object& object) {
  testing::Fleet fleet;
  fleet.Put(testing::GatewayWith("g", "z"));
  if constexpr (std::is_same_v<Object, Tenant>) fleet.Put(testing::PoolWith("t", "p", "z"));
  if constexpr (std::is_same_v<Object, Pool>) fleet.Put(testing::TenantWith("t"));
  fleet.Put(object);
  return controllers::ConfigOf(fleet.view, fleet.placement, "gateways/g",
                               model::NameOf(object.name()));
}

// Judgement of both; empty: both accept.
struct Judgement {
  std::string api;
  std::string gateway;
};

template <typename Object>
Judgement Judge(const Object& object) {
  Judgement judgement;
  if (const auto violations = model::Check(object); !violations.empty())
    judgement.api = violations.front().field + " " + violations.front().text;
  const types::v1::ConfigObject pushed = Pushed(object);
  EXPECT_FALSE(pushed.removed());
  if (const auto wrong = CheckObject(pushed)) judgement.gateway = wrong->text;
  return judgement;
}

Pool GoodPool() { return testing::PoolWith("t", "p", "z"); }
Tenant GoodTenant() { return testing::TenantWith("t"); }
Gateway GoodGateway() { return testing::GatewayWith("g", "z"); }
CcPolicy GoodPolicy() {
  CcPolicy policy;
  policy.set_name("ccPolicies/c");
  policy.mutable_spec();
  return policy;
}

// Sets each field of the message and of its parts to one value after the other, and calls `judge`
// with a description.
void ForEachValue(Message& message, const std::string& path,
                  const std::function<void(const std::string& what)>& judge) {
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const std::string at = path + "." + std::string(field.name());
    // Only the controller uses these.
    if (field.name() == "gateways" || field.name() == "display_name" ||
        field.name() == "fleet_cap" || field.name() == "donated_bytes") {
      continue;
    }
    const bool had = !field.is_repeated() && reflection.HasField(message, &field);
    const auto numbers = [&](auto set, auto... of_type) {
      for (const auto value : {of_type...}) {
        set(value);
        judge(at + " = " + std::to_string(value));
      }
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (field.is_repeated()) {
          ForEachValue(*reflection.AddMessage(&message, &field), at, judge);
        } else {
          ForEachValue(*reflection.MutableMessage(&message, &field), at, judge);
        }
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        for (const char* text : {"x", "192.0.2.1", "10.0.0.0/8", "10.0.0.1/8", "ccPolicies/c"}) {
          if (field.is_repeated()) {
            reflection.AddString(&message, &field, text);
          } else {
            reflection.SetString(&message, &field, text);
          }
          judge(at + " = " + text);
          if (field.is_repeated()) reflection.ClearField(&message, &field);
        }
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        numbers([&](uint64_t value) { reflection.SetUInt64(&message, &field, value); }, uint64_t{0},
                uint64_t{1}, uint64_t{4095}, uint64_t{4096}, uint64_t{1} << 24,
                (uint64_t{1} << 24) + 1, uint64_t{1} << 30, (uint64_t{1} << 30) + 1,
                std::numeric_limits<uint64_t>::max());
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        numbers([&](uint32_t value) { reflection.SetUInt32(&message, &field, value); }, 0u, 1u,
                511u, 512u, 1000u, 1001u, 1024u, 1025u, 1u << 20, (1u << 20) + 1,
                std::numeric_limits<uint32_t>::max());
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        numbers([&](int64_t value) { reflection.SetInt64(&message, &field, value); }, int64_t{-1},
                int64_t{0}, int64_t{1}, int64_t{1000000000}, int64_t{1000000001});
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        numbers([&](int32_t value) { reflection.SetInt32(&message, &field, value); }, -1, 0,
                999999999, 1000000000);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        numbers([&](int value) { reflection.SetEnumValue(&message, &field, value); }, 0, 1, 2, 3, 4,
                77);
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection.SetBool(&message, &field, true);
        judge(at + " = true");
        break;
      default:
        FAIL() << at << " has a type that this test does not know";
    }
    if (!had) reflection.ClearField(&message, &field);
  }
}

template <typename Object>
void ExpectAgreement(Object object, int at_least) {
  int judged = 0;
  int refused = 0;
  ForEachValue(*object.mutable_spec(), "spec", [&](const std::string& what) {
    const Judgement judgement = Judge(object);
    EXPECT_EQ(judgement.api.empty(), judgement.gateway.empty())
        << what << "\n  API: " << judgement.api << "\n  gateway: " << judgement.gateway;
    ++judged;
    if (!judgement.api.empty()) ++refused;
  });
  EXPECT_GE(judged, at_least);
  EXPECT_GE(refused, at_least / 10);
}

TEST(ApiAgreement, Pools) { ExpectAgreement(GoodPool(), 300); }
TEST(ApiAgreement, Tenants) { ExpectAgreement(GoodTenant(), 250); }
TEST(ApiAgreement, Gateways) { ExpectAgreement(GoodGateway(), 100); }
TEST(ApiAgreement, CcPolicies) { ExpectAgreement(GoodPolicy(), 9); }

// Values that no gateway accepts, and rules over several fields.
struct Refused {
  const char* name;
  std::function<Judgement(std::string& field)> judge;
  const char* field;
};

template <typename Object>
auto Spoiled(Object object, std::function<void(decltype(*object.mutable_spec()))> spoil) {
  return [object, spoil](std::string& field) mutable {
    spoil(*object.mutable_spec());
    const auto violations = model::Check(object);
    EXPECT_EQ(violations.size(), 1u);
    if (!violations.empty()) field = violations.front().field;
    return Judge(object);
  };
}

class RefusedByBoth : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedByBoth, NamingTheField) {
  std::string field;
  const Judgement judgement = GetParam().judge(field);
  EXPECT_EQ(field, GetParam().field);
  EXPECT_NE(judgement.api, "");
  EXPECT_NE(judgement.gateway, "");
}

using PoolSpec = types::v1::PoolSpec;
INSTANTIATE_TEST_SUITE_P(
    ApiAgreement, RefusedByBoth,
    ::testing::Values(
        Refused{"committed_above_peak",
                Spoiled(GoodPool(),
                        [](PoolSpec& s) {
                          s.mutable_quota()->mutable_committed()->set_mrs(5);
                          s.mutable_quota()->mutable_peak()->set_mrs(4);
                        }),
                "spec.quota.committed.mrs"},
        Refused{"committed_rate_above_peak",
                Spoiled(GoodTenant(),
                        [](types::v1::TenantSpec& s) {
                          s.mutable_quota()->mutable_committed()->set_bytes_per_second(5);
                          s.mutable_quota()->mutable_peak()->set_bytes_per_second(4);
                        }),
                "spec.quota.committed.bytes_per_second"},
        Refused{"reserve_above_qps",
                Spoiled(GoodPool(),
                        [](PoolSpec& s) {
                          s.set_ready_qps(3);
                          s.mutable_quota()->mutable_peak()->set_qps(2);
                        }),
                "spec.ready_qps"},
        Refused{"reserve_above_memory",
                Spoiled(GoodPool(),
                        [](PoolSpec& s) {
                          s.set_ready_qps(17);
                          s.mutable_quota()->mutable_peak()->set_segment_bytes(8388607);
                        }),
                "spec.ready_qps"},
        Refused{"accounts_without_identity",
                Spoiled(GoodPool(),
                        [](PoolSpec& s) {
                          s.mutable_attach()->add_service_accounts()->set_namespace_("n");
                        }),
                "spec.attach.service_accounts"},
        Refused{"account_of_no_namespace",
                Spoiled(GoodPool(),
                        [](PoolSpec& s) {
                          s.mutable_attach()->set_identity(types::v1::REQUIRED);
                          s.mutable_attach()->add_service_accounts()->set_name("trainer");
                        }),
                "spec.attach.service_accounts[0]"},
        Refused{"account_of_a_namespace_and_of_labels",
                Spoiled(GoodPool(),
                        [](PoolSpec& s) {
                          s.mutable_attach()->set_identity(types::v1::REQUIRED);
                          auto& account = *s.mutable_attach()->add_service_accounts();
                          account.set_namespace_("n");
                          (*account.mutable_namespace_labels())["team"] = "ml";
                        }),
                "spec.attach.service_accounts[0]"},
        Refused{"small_window",
                Spoiled(GoodPolicy(), [](types::v1::CcPolicySpec& s) { s.set_window_bytes(4095); }),
                "spec.window_bytes"},
        Refused{
            "negative_deadline",
            Spoiled(GoodGateway(),
                    [](types::v1::GatewaySpec& s) { s.mutable_drain_deadline()->set_nanos(-1); }),
            "spec.drain_deadline"},
        Refused{"long_second",
                Spoiled(GoodGateway(),
                        [](types::v1::GatewaySpec& s) {
                          s.mutable_drain_deadline()->set_nanos(1000000000);
                        }),
                "spec.drain_deadline"}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace rocegw::apply
