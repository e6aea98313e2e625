// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/object_input.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "controlplane/cli/documents/documents.h"
#include "rocegw/types/v1/gateway.pb.h"
#include "rocegw/types/v1/pool.pb.h"
#include "rocegw/types/v1/tenant.pb.h"

namespace rocegw::cli {
namespace {

using google::protobuf::TextFormat;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

template <typename Object>
const Object& As(const ObjectInput& input) {
  return static_cast<const Object&>(*input.object);
}

std::string Text(const google::protobuf::Message& message) { return message.ShortDebugString(); }

template <typename Object>
Object FromText(const char* text) {
  Object object;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &object));
  return object;
}

TEST(ObjectInput_Documents, HumanUnits_BecomeTheMessage) {
  std::vector<ObjectInput> inputs;
  const CallResult result = ParseObjects(R"(
name: tenants/blue/pools/web
meta: {labels: {zone: 1, fast: true}}
spec:
  gateways: {all: yes, names: [gateways/host-a]}
  quota:
    committed: {qps: 1k, registeredBytes: 16MiB}
    peak: {bytes_per_second: 10Gbps}
  attach: {socket_mode: 0660, identity: recorded, service_accounts: [{namespace: web}]}
  memory: {remap: deny}
---
name: gateways/host-a
spec: {admin_state: draining, drain_deadline: 1h30m, on_deadline: Disconnect}
)",
                                         "f", inputs);
  ASSERT_TRUE(result.ok()) << result.text;
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(Text(As<types::v1::Pool>(inputs[0])), Text(FromText<types::v1::Pool>(
                                                      R"(name: "tenants/blue/pools/web"
             meta { labels { key: "zone" value: "1" } labels { key: "fast" value: "true" } }
             spec { gateways { all: true names: "gateways/host-a" }
                    quota { committed { qps: 1000 registered_bytes: 16777216 }
                            peak { bytes_per_second: 1250000000 } }
                    attach { socket_mode: 432 identity: RECORDED
                             service_accounts { namespace: "web" } }
                    memory { remap: DENY } })")));
  EXPECT_THAT(inputs[0].mask,
              UnorderedElementsAre(
                  "meta.labels", "spec.gateways.all", "spec.gateways.names",
                  "spec.quota.committed.qps", "spec.quota.committed.registered_bytes",
                  "spec.quota.peak.bytes_per_second", "spec.attach.socket_mode",
                  "spec.attach.identity", "spec.attach.service_accounts", "spec.memory.remap"));
  EXPECT_EQ(As<types::v1::Gateway>(inputs[1]).spec().drain_deadline().seconds(), 5400);
  EXPECT_EQ(inputs[1].where, "f:12");
}

TEST(ObjectInput_Documents, WhatTheServerPrinted_IsReadBack) {
  const auto pool = FromText<types::v1::Pool>(
      R"(name: "tenants/t/pools/p" meta { uid: "u" etag: "r12" generation: 3
           create_time { seconds: 5 } labels { key: "a" value: "b" } }
         spec { quota { peak { qps: 7 } } attach { socket_mode: 432 } slots: 4 }
         status { gateways_selected: 2 })");
  for (const std::string& text :
       {ObjectsYaml({&pool}), ObjectsJson("pools", {&pool}), ObjectJson(pool)}) {
    std::vector<ObjectInput> inputs;
    const CallResult result = ParseObjects(text, "f", inputs);
    ASSERT_TRUE(result.ok()) << result.text << "\n" << text;
    ASSERT_EQ(inputs.size(), 1u);
    const auto& read = As<types::v1::Pool>(inputs[0]);
    EXPECT_EQ(Text(read.spec()), Text(pool.spec()));
    EXPECT_EQ(read.meta().etag(), "r12");
    EXPECT_FALSE(read.has_status());
    EXPECT_EQ(read.meta().uid(), "");
    EXPECT_THAT(inputs[0].mask, UnorderedElementsAre("meta.labels", "spec.quota.peak.qps",
                                                     "spec.attach.socket_mode", "spec.slots"));
  }
}

TEST(ObjectInput_Documents, EveryMistake_IsToldWithItsPlace) {
  std::vector<ObjectInput> inputs;
  const CallResult result = ParseObjects(
      "name: tenants/blue\n"
      "spec:\n"
      "  wieght: 3\n"
      "  weight: heavy\n"
      "  quota: {peak: {registered_bytes: 5 apples}}\n"
      "  allowed_peers: 10.0.0.0/8\n"
      "---\n"
      "name: roleBindings/r\n"
      "spec: {role: king}\n"
      "---\n"
      "spec: {}\n",
      "fleet.yaml", inputs);
  EXPECT_EQ(result.code, kUsage);
  EXPECT_THAT(result.text, HasSubstr("fleet.yaml: line 3: spec.wieght: no such field; there are: "
                                     "display_name, quota, fleet_cap, weight, allowed_peers"));
  EXPECT_THAT(result.text, HasSubstr("line 4: spec.weight: 'heavy' is not a whole number"));
  EXPECT_THAT(result.text, HasSubstr("line 5: spec.quota.peak.registered_bytes: '5 apples'"));
  EXPECT_THAT(result.text, HasSubstr("line 6: spec.allowed_peers: needs a list"));
  EXPECT_THAT(result.text, HasSubstr("line 9: spec.role: 'king' is not one of VIEWER, OPERATOR"));
  EXPECT_THAT(result.text, HasSubstr("line 11: has no name"));
}

TEST(ObjectInput_Documents, NotYamlOrEmpty_IsRefused) {
  for (const char* text : {"", "---\n", "a: [", "just words", "name: hosts/x\n"}) {
    std::vector<ObjectInput> inputs;
    EXPECT_EQ(ParseObjects(text, "f", inputs).code, kUsage) << text;
  }
}

TEST(ObjectInput_Assignments, SetClearAndMaps) {
  const Kind& tenants = *FindKind("t");
  ObjectInput input;
  CallResult result = ParseAssignments(
      tenants, "tenants/blue",
      {"weight=3", "quota.peak.qps=5k", "quota.committed.qps=", "labels.zone=a",
       "labels.old=", "allowed_peers=[10.0.0.0/8, 192.0.2.0/24]", "display_name=no: [yaml"},
      input);
  ASSERT_TRUE(result.ok()) << result.text;
  const auto before = FromText<types::v1::Tenant>(
      R"(name: "tenants/blue" meta { etag: "r1" labels { key: "old" value: "x" }
           labels { key: "kept" value: "y" } }
         spec { weight: 1 quota { committed { qps: 2 mrs: 3 } } })");
  const MessagePtr merged = Merged(before, input, false);
  const auto& after = static_cast<const types::v1::Tenant&>(*merged);
  EXPECT_EQ(after.spec().weight(), 3u);
  EXPECT_EQ(after.spec().quota().peak().qps(), 5000u);
  EXPECT_FALSE(after.spec().quota().committed().has_qps());
  EXPECT_EQ(after.spec().quota().committed().mrs(), 3u);
  EXPECT_EQ(after.spec().display_name(), "no: [yaml");
  EXPECT_THAT(after.spec().allowed_peers(), ElementsAre("10.0.0.0/8", "192.0.2.0/24"));
  EXPECT_EQ(after.meta().labels().size(), 2u);
  EXPECT_EQ(after.meta().labels().at("zone"), "a");
  EXPECT_EQ(after.meta().labels().at("kept"), "y");

  ObjectInput wrong;
  EXPECT_EQ(ParseAssignments(tenants, "tenants/x", {"weight"}, wrong).code, kUsage);
  EXPECT_EQ(ParseAssignments(tenants, "tenants/x", {"wieght=1"}, wrong).code, kUsage);
}

TEST(ObjectInput_Paths, AllCanBeAssigned) {
  for (const Kind& kind : Kinds()) {
    for (const std::string& path : AssignablePaths(kind)) {
      if (path.ends_with('.')) continue;
      ObjectInput input;
      // Every type can be cleared.
      const CallResult result = ParseAssignments(kind, "x/y", {path + "="}, input);
      EXPECT_TRUE(result.ok()) << path << ": " << result.text;
      EXPECT_THAT(input.mask, ElementsAre("spec." + path));
    }
  }
}

TEST(Kinds_Names, WhatPeopleWrite_IsUnderstood) {
  EXPECT_EQ(FindKind("CCPOLICY"), FindKind("cc"));
  EXPECT_EQ(FindKind("rolebindings"), FindKind("rb"));
  EXPECT_EQ(FindKind("sheep"), nullptr);
  std::string name;
  ASSERT_TRUE(FullName(*FindKind("pool"), "blue/web", "", name).ok());
  EXPECT_EQ(name, "tenants/blue/pools/web");
  ASSERT_TRUE(FullName(*FindKind("pool"), "web", "tenants/blue", name).ok());
  EXPECT_EQ(name, "tenants/blue/pools/web");
  ASSERT_TRUE(FullName(*FindKind("gw"), "gateways/a", "", name).ok());
  EXPECT_EQ(name, "gateways/a");
  EXPECT_EQ(FullName(*FindKind("pool"), "web", "", name).code, kUsage);
  ASSERT_TRUE(FullName(*FindKind("do"), "host-a/donor", "", name).ok());
  EXPECT_EQ(name, "gateways/host-a/donors/donor");
  ASSERT_TRUE(FullName(*FindKind("donor"), "gateways/host-a/donors/d", "", name).ok());
  EXPECT_EQ(name, "gateways/host-a/donors/d");
  EXPECT_EQ(FullName(*FindKind("donor"), "donor", "tenants/blue", name).code, kUsage);
  EXPECT_EQ(KindOfName("gateways/host-a/donors/d"), FindKind("donors"));
  EXPECT_EQ(ShortName("tenants/blue/pools/web"), "blue/web");
  EXPECT_EQ(KindOfName("tenants/blue/pools/web"), FindKind("pools"));
  for (const Kind& kind : Kinds()) {
    EXPECT_EQ(kind.Method("Get").output_type(), kind.object) << kind.plural;
    EXPECT_NE(kind.Method("List").name(), "") << kind.plural;
  }
}

}  // namespace
}  // namespace rocegw::cli
