// SPDX-License-Identifier: Apache-2.0
#include "gateway/apply/engine.h"

#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/apply/fake_target.h"

namespace rocegw::apply {
namespace {

using types::v1::APPLIED;
using types::v1::ConfigObject;
using types::v1::NEED_FULL;
using types::v1::Push;
using types::v1::PushReport;
using types::v1::UNADOPTED;

constexpr char kStore[] = "11111111-1111-4111-8111-111111111111";
constexpr char kOther[] = "22222222-2222-4222-8222-222222222222";

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() {
    char path[] = "/tmp/rocegw-apply-XXXXXX";
    folder = mkdtemp(path);
    Make();
  }
  ~EngineTest() override { std::filesystem::remove_all(folder); }

  void Make(const std::vector<ConfigObject>& objects = {}) {
    target = {};
    target.refused = away;
    target.without_sockets = socketless;
    tenant::Amounts capacity = tenant::Amounts::Of(tenant::kUnlimited);
    capacity[tenant::Resource::kQps] = 100;
    engine.emplace(Facts{"gateways/g", capacity, folder + "/config.state"}, target,
                   [] { return int64_t{5000000000}; });
    started = engine->Start(objects);
  }
  PushReport Full(int64_t revision, std::vector<ConfigObject> objects, const char* store = kStore,
                  bool adopt = false) {
    Push push;
    push.set_nonce("n" + std::to_string(revision));
    push.set_store_uuid(store);
    push.set_revision(revision);
    push.set_full(true);
    push.set_adopt(adopt);
    *push.add_objects() = GatewayObject();
    for (ConfigObject& object : objects) {
      if (object.has_gateway()) {
        *push.mutable_objects(0) = object;
      } else {
        *push.add_objects() = object;
      }
    }
    return engine->Apply(push);
  }
  PushReport Delta(int64_t revision, const std::vector<ConfigObject>& objects) {
    Push push;
    push.set_store_uuid(kStore);
    push.set_base_revision(engine->revision());
    push.set_revision(revision);
    for (const ConfigObject& object : objects) *push.add_objects() = object;
    return engine->Apply(push);
  }
  // Returns "name: REASON", sorted by name.
  static std::vector<std::string> Rejections(const PushReport& report) {
    std::vector<std::string> all;
    for (const auto& rejection : report.rejections())
      all.push_back(rejection.object() + ": " + rejection.reason());
    return all;
  }
  uint64_t CommittedQps(const std::string& pool) {
    return target.pools.at(pool).quota.committed[tenant::Resource::kQps];
  }
  using Texts = std::vector<std::string>;

  std::string folder;
  FakeTarget target;
  std::optional<Engine> engine;
  std::set<std::string> away;  // pools that a new target refuses
  std::set<std::string> socketless;
  Status started;
};

TEST_F(EngineTest, FullPush_AppliesInOrderOfDependencyWhateverItsOrder) {
  const PushReport report =
      Full(7, {PoolObject("red", "a"), PolicyObject("slow", 65536), TenantObject("red")});
  EXPECT_EQ(report.status(), APPLIED);
  EXPECT_EQ(report.nonce(), "n7");
  EXPECT_EQ(report.store_uuid(), kStore);
  EXPECT_EQ(report.applied_revision(), 7);
  EXPECT_EQ(report.apply_time().seconds(), 5);
  EXPECT_EQ(Rejections(report), Texts());
  EXPECT_EQ(target.said, (Texts{"set tenants/red", "set tenants/red/pools/a"}));
}

TEST_F(EngineTest, WhatIsNotInAFullPush_IsRemovedPoolsBeforeTenants) {
  Full(1, {TenantObject("red"), PoolObject("red", "a"), PoolObject("red", "b")});
  target.said.clear();
  Full(2, {TenantObject("blue")});
  EXPECT_EQ(target.said, (Texts{"set tenants/blue", "remove tenants/red/pools/a",
                                "remove tenants/red/pools/b", "remove tenants/red"}));
}

TEST_F(EngineTest, Unchanged_IsNotToldAgain) {
  Full(1, {TenantObject("red"), PoolObject("red", "a")});
  target.said.clear();
  Full(2, {TenantObject("red"), PoolObject("red", "a")});
  EXPECT_EQ(target.said, Texts());
}

TEST_F(EngineTest, Delta_ChangesAddsAndRemoves) {
  Full(1, {TenantObject("red"), PoolObject("red", "a"), PoolObject("red", "b")});
  const PushReport report =
      Delta(2, {PoolObject("red", "a", 5), PoolObject("red", "c"), Removal("tenants/red/pools/b")});
  EXPECT_EQ(report.status(), APPLIED);
  EXPECT_EQ(CommittedQps("tenants/red/pools/a"), 5u);
  EXPECT_EQ(target.pools.size(), 2u);
  EXPECT_EQ(Delta(3, {Removal("tenants/never")}).status(), APPLIED);
}

TEST_F(EngineTest, DeltaOnSomethingElse_NeedsFullAndChangesNothing) {
  Push push;
  push.set_store_uuid(kStore);
  push.set_revision(5);
  *push.add_objects() = TenantObject("red");
  EXPECT_EQ(engine->Apply(push).status(), NEED_FULL) << "nothing but the static runs";
  Full(1, {});
  push.set_base_revision(3);
  EXPECT_EQ(engine->Apply(push).status(), NEED_FULL);
  EXPECT_EQ(engine->revision(), 1);
  EXPECT_TRUE(target.tenants.empty());
}

TEST_F(EngineTest, OtherStoreOrOlderRevision_IsUnadoptedUntilAdopted) {
  Full(10, {TenantObject("red")});
  PushReport report = Full(20, {}, kOther);
  EXPECT_EQ(report.status(), UNADOPTED);
  EXPECT_EQ(report.store_uuid(), kStore);
  EXPECT_EQ(report.applied_revision(), 10);
  EXPECT_EQ(Full(9, {}).status(), UNADOPTED);
  EXPECT_TRUE(target.tenants.contains("tenants/red"));
  report = Full(3, {TenantObject("blue")}, kOther, true);
  EXPECT_EQ(report.status(), APPLIED);
  EXPECT_EQ(report.store_uuid(), kOther);
  EXPECT_EQ(report.applied_revision(), 3);
  EXPECT_FALSE(target.tenants.contains("tenants/red"));
}

TEST_F(EngineTest, PushInParts_TakesEffectWithTheLast) {
  Full(1, {TenantObject("old")});
  Push part;
  part.set_store_uuid(kStore);
  part.set_revision(2);
  part.set_full(true);
  part.set_more(true);
  *part.add_objects() = GatewayObject();
  *part.add_objects() = TenantObject("red");
  PushReport report = engine->Apply(part);
  EXPECT_EQ(report.status(), APPLIED);
  EXPECT_EQ(report.applied_revision(), 1);
  EXPECT_TRUE(target.tenants.contains("tenants/old"));
  part.clear_objects();
  part.set_more(false);
  *part.add_objects() = PoolObject("red", "a");
  report = engine->Apply(part);
  EXPECT_EQ(report.applied_revision(), 2);
  EXPECT_TRUE(target.pools.contains("tenants/red/pools/a"));
  EXPECT_FALSE(target.tenants.contains("tenants/old"));
}

TEST_F(EngineTest, DeltaInParts_TakesEffectWithTheLast) {
  Full(1, {TenantObject("red")});
  Push part;
  part.set_nonce("d");
  part.set_store_uuid(kStore);
  part.set_base_revision(1);
  part.set_revision(2);
  part.set_more(true);
  *part.add_objects() = PoolObject("red", "a");
  PushReport report = engine->Apply(part);
  EXPECT_EQ(report.status(), APPLIED);
  EXPECT_EQ(report.applied_revision(), 1);
  EXPECT_TRUE(target.pools.empty());
  part.set_more(false);
  *part.mutable_objects(0) = PoolObject("red", "b");
  report = engine->Apply(part);
  EXPECT_EQ(report.applied_revision(), 2);
  EXPECT_EQ(target.pools.size(), 2u);
  EXPECT_TRUE(target.tenants.contains("tenants/red"));
}

TEST_F(EngineTest, PartOfAnotherPush_DropsWhatWasBegun) {
  Full(1, {TenantObject("red")});
  Push part;
  part.set_nonce("d");
  part.set_store_uuid(kStore);
  part.set_base_revision(1);
  part.set_revision(2);
  part.set_more(true);
  *part.add_objects() = PoolObject("red", "a");
  engine->Apply(part);
  part.set_nonce("e");
  part.set_more(false);
  *part.mutable_objects(0) = PoolObject("red", "b");
  EXPECT_EQ(engine->Apply(part).status(), APPLIED);
  EXPECT_FALSE(target.pools.contains("tenants/red/pools/a"));
  EXPECT_TRUE(target.pools.contains("tenants/red/pools/b"));
}

// The first part went to a gateway that was restarted meanwhile.
TEST_F(EngineTest, FirstPartMissing_NeedsFull) {
  Full(1, {TenantObject("red")});
  Push last;
  last.set_store_uuid(kStore);
  last.set_revision(2);
  last.set_full(true);
  *last.add_objects() = TenantObject("blue");
  EXPECT_EQ(engine->Apply(last).status(), NEED_FULL);
  Push first = last;
  first.set_more(true);
  *first.mutable_objects(0) = GatewayObject();
  EXPECT_EQ(engine->Apply(first).status(), APPLIED);
  last.set_revision(3);
  EXPECT_EQ(engine->Apply(last).status(), NEED_FULL) << "of another state";
  EXPECT_TRUE(target.tenants.contains("tenants/red"));
}

TEST_F(EngineTest, Rejected_KeepsItsOldVersionAndOthersTakeEffect) {
  Full(1, {TenantObject("red"), PoolObject("red", "a", 5)});
  ConfigObject bad = PoolObject("red", "a", 6);
  bad.mutable_pool()->mutable_spec()->set_slots(5000);
  PushReport report = Delta(2, {bad, PoolObject("red", "b", 7)});
  EXPECT_EQ(report.status(), APPLIED);
  EXPECT_EQ(report.applied_revision(), 2);
  ASSERT_EQ(Rejections(report), Texts{"tenants/red/pools/a: INVALID"});
  EXPECT_EQ(report.rejections(0).message(), "pool.spec.slots must be at most 1024, is 5000");
  EXPECT_EQ(CommittedQps("tenants/red/pools/a"), 5u);
  EXPECT_EQ(CommittedQps("tenants/red/pools/b"), 7u);
  report = Delta(3, {PoolObject("red", "b", 8)});
  EXPECT_EQ(Rejections(report), Texts{"tenants/red/pools/a: INVALID"}) << "it stands";
  report = Delta(4, {PoolObject("red", "a", 9)});
  EXPECT_EQ(Rejections(report), Texts());
  EXPECT_EQ(CommittedQps("tenants/red/pools/a"), 9u);
}

struct Bad {
  const char* name;
  std::function<void(ConfigObject&)> spoil;
  const char* reason;
  const char* text;
};

class BadObject : public EngineTest, public ::testing::WithParamInterface<Bad> {};

TEST_P(BadObject, IsRejectedWithItsReason) {
  Full(1, {TenantObject("red")});
  ConfigObject object = PoolObject("red", "a");
  GetParam().spoil(object);
  const PushReport report = Delta(2, {object});
  EXPECT_EQ(report.status(), APPLIED);
  ASSERT_EQ(report.rejections_size(), 1);
  EXPECT_EQ(report.rejections(0).reason(), GetParam().reason);
  EXPECT_NE(report.rejections(0).message().find(GetParam().text), std::string::npos)
      << report.rejections(0).message();
  EXPECT_TRUE(target.pools.empty());
}

types::v1::PoolSpec& Spec(ConfigObject& object) { return *object.mutable_pool()->mutable_spec(); }

INSTANTIATE_TEST_SUITE_P(
    Engine, BadObject,
    ::testing::Values(
        Bad{"unknown_field",
            [](ConfigObject& o) {
              Spec(o)
                  .mutable_quota()
                  ->GetReflection()
                  ->MutableUnknownFields(Spec(o).mutable_quota())
                  ->AddVarint(77, 1);
            },
            "UNSUPPORTED", "pool.spec.quota.field 77"},
        Bad{"unknown_enum",
            [](ConfigObject& o) { Spec(o).mutable_memory()->set_remap(types::v1::Remap(9)); },
            "UNSUPPORTED", "pool.spec.memory.remap = 9"},
        Bad{"unknown_kind",
            [](ConfigObject& o) {
              o.clear_value();
              o.GetReflection()->MutableUnknownFields(&o)->AddVarint(50, 1);
            },
            "UNSUPPORTED", "field 50"},
        Bad{"no_value", [](ConfigObject& o) { o.clear_value(); }, "INVALID", "has no value"},
        Bad{"name", [](ConfigObject& o) { o.mutable_pool()->set_name("tenants/red/pools/b"); },
            "INVALID", "is named 'tenants/red/pools/b'"},
        Bad{"form_of_name",
            [](ConfigObject& o) {
              o.set_name("tenants/red/pools/A b");
              o.mutable_pool()->set_name(o.name());
            },
            "INVALID", "name"},
        Bad{"address", [](ConfigObject& o) { Spec(o).add_addresses("nowhere"); }, "INVALID",
            "addresses[0]"},
        Bad{"committed_above_peak",
            [](ConfigObject& o) {
              Spec(o).mutable_quota()->mutable_committed()->set_mrs(5);
              Spec(o).mutable_quota()->mutable_peak()->set_mrs(4);
            },
            "INVALID", "quota.committed.mrs is 5, more than the peak, which is 4"},
        Bad{"policy", [](ConfigObject& o) { Spec(o).set_cc_policy("ccPolicies/none"); },
            "MISSING_CC_POLICY", "ccPolicies/none"},
        Bad{"service_accounts",
            [](ConfigObject& o) {
              Spec(o).mutable_attach()->add_service_accounts()->set_namespace_("default");
            },
            "INVALID", "service_accounts need spec.attach.identity REQUIRED"},
        Bad{"service_account_of_no_namespace",
            [](ConfigObject& o) {
              auto& attach = *Spec(o).mutable_attach();
              attach.set_identity(types::v1::REQUIRED);
              attach.add_service_accounts()->set_name("trainer");
            },
            "INVALID", "needs a namespace or namespace_labels"},
        Bad{"reserve_above_memory",
            [](ConfigObject& o) {
              Spec(o).set_ready_qps(17);
              Spec(o).mutable_quota()->mutable_peak()->set_segment_bytes(8388607);
            },
            "NO_CAPACITY", "17 ready queue pairs take 8388608 bytes of shared memory"},
        Bad{"reserve_above_qps",
            [](ConfigObject& o) {
              Spec(o).set_ready_qps(3);
              Spec(o).mutable_quota()->mutable_peak()->set_qps(2);
            },
            "NO_CAPACITY", "spec.ready_qps is 3; quota.peak.qps is 2"},
        Bad{"reserve_above_gateway", [](ConfigObject& o) { Spec(o).set_ready_qps(101); },
            "NO_CAPACITY", "counts as committed"},
        Bad{"other_gateway", [](ConfigObject& o) { o = GatewayObject(0, "h"); }, "INVALID",
            "this is gateways/g"},
        Bad{"tenants_peers",
            [](ConfigObject& o) {
              o = TenantObject("red");
              o.mutable_tenant()->add_allowed_peers("10.0.0.1/8");
            },
            "INVALID", "allowed_peers"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(EngineTest, PoolWithoutTenant_IsRejectedAndItsTenantCannotGoBeforeIt) {
  EXPECT_EQ(Rejections(Full(1, {PoolObject("red", "a")})),
            Texts{"tenants/red/pools/a: MISSING_TENANT"});
  Delta(2, {TenantObject("red"), PoolObject("red", "a")});
  EXPECT_EQ(Rejections(Delta(3, {Removal("tenants/red")})), Texts{"tenants/red: IN_USE"});
  EXPECT_TRUE(target.tenants.contains("tenants/red"));
  EXPECT_EQ(Rejections(Delta(4, {Removal("tenants/red"), Removal("tenants/red/pools/a")})),
            Texts());
  EXPECT_TRUE(target.tenants.empty());
}

// Objects that depend on a rejected tenant are rejected, too.
TEST_F(EngineTest, TenantRejected_ItsNewPoolsAreMissingIt) {
  ConfigObject tenant = TenantObject("red");
  tenant.mutable_tenant()->add_allowed_peers("x");
  EXPECT_EQ(Rejections(Full(1, {tenant, PoolObject("red", "a")})),
            (Texts{"tenants/red: INVALID", "tenants/red/pools/a: MISSING_TENANT"}));
}

TEST_F(EngineTest, CommittedBeyondCapacity_TheOneThatCameLastIsRejected) {
  const PushReport report = Full(1, {TenantObject("red"), PoolObject("red", "a", 60),
                                     PoolObject("red", "b", 40), PoolObject("red", "c", 30)});
  EXPECT_EQ(Rejections(report), Texts{"tenants/red/pools/c: NO_CAPACITY"});
  EXPECT_EQ(target.pools.size(), 2u);
}

TEST_F(EngineTest, CommittedBeyondTheTenantsPeak_IsRejected) {
  PushReport report = Full(1, {TenantObject("red", 50), PoolObject("red", "a", 40)});
  EXPECT_EQ(Rejections(report), Texts());
  report = Delta(2, {PoolObject("red", "b", 20)});
  ASSERT_EQ(Rejections(report), Texts{"tenants/red/pools/b: NO_CAPACITY"});
  EXPECT_EQ(report.rejections(0).message(),
            "brings the committed qps to 60; the peak of tenants/red is 50");
  EXPECT_EQ(Rejections(Delta(3, {TenantObject("red", 30)}))[0], "tenants/red: NO_CAPACITY");
  EXPECT_EQ(target.tenants.at("tenants/red").quota.peak[tenant::Resource::kQps], 50u);
}

// An amount that one pool gives up can go to another in the same push, in any order.
TEST_F(EngineTest, CommittedMovesBetweenPools_FitsInOnePush) {
  Full(1, {TenantObject("red"), PoolObject("red", "a", 90), PoolObject("red", "b", 10)});
  EXPECT_EQ(Rejections(Delta(2, {PoolObject("red", "b", 90), PoolObject("red", "a", 10)})),
            Texts());
  EXPECT_EQ(CommittedQps("tenants/red/pools/b"), 90u);
  EXPECT_EQ(Rejections(Delta(3, {PoolObject("red", "c", 90), Removal("tenants/red/pools/b")})),
            Texts());
}

TEST_F(EngineTest, SocketsThatCannotBeMade_RejectThePoolUntilTheyCan) {
  Full(1, {TenantObject("red"), PoolObject("red", "a", 5)});
  target.without_sockets = {"tenants/red/pools/a", "tenants/red/pools/n"};
  const PushReport report =
      Delta(2, {PoolObject("red", "a", 6), PoolObject("red", "b", 7), PoolObject("red", "n", 1)});
  EXPECT_EQ(Rejections(report),
            (Texts{"tenants/red/pools/a: SOCKET_FAILED", "tenants/red/pools/n: SOCKET_FAILED"}));
  EXPECT_EQ(report.rejections(0).message(), "no room");
  EXPECT_EQ(CommittedQps("tenants/red/pools/a"), 5u) << "its old version";
  EXPECT_EQ(CommittedQps("tenants/red/pools/b"), 7u);
  EXPECT_FALSE(target.pools.contains("tenants/red/pools/n"));
  EXPECT_EQ(engine->Retry(), 0u);
  EXPECT_TRUE(engine->has_waiting());
  target.without_sockets.clear();
  EXPECT_EQ(engine->Retry(), 2u);
  EXPECT_EQ(CommittedQps("tenants/red/pools/a"), 6u);
  EXPECT_EQ(CommittedQps("tenants/red/pools/n"), 1u);
  EXPECT_FALSE(engine->has_waiting());
  EXPECT_EQ(Rejections(Delta(3, {})), Texts());
}

TEST_F(EngineTest, PoolWithoutItsSockets_GivesOthersNothing) {
  Full(1, {TenantObject("red"), PoolObject("red", "a", 90), PoolObject("red", "b", 10)});
  target.without_sockets = {"tenants/red/pools/a"};
  ConfigObject wider = PoolObject("red", "b", 60);
  wider.mutable_pool()->mutable_spec()->set_slots(3);
  EXPECT_EQ(Rejections(Delta(2, {PoolObject("red", "a", 10), wider, PoolObject("red", "c", 30)})),
            (Texts{"tenants/red/pools/a: SOCKET_FAILED", "tenants/red/pools/b: NO_CAPACITY",
                   "tenants/red/pools/c: NO_CAPACITY"}));
  EXPECT_EQ(CommittedQps("tenants/red/pools/a"), 90u);
  EXPECT_EQ(CommittedQps("tenants/red/pools/b"), 10u);
  EXPECT_EQ(target.sockets.at("tenants/red/pools/b"), 0u) << "what was made for it went again";
  EXPECT_FALSE(target.sockets.contains("tenants/red/pools/c"));
}

TEST_F(EngineTest, WaitingForSockets_EndsWithNewerWord) {
  Full(1, {TenantObject("red")});
  target.without_sockets = {"tenants/red/pools/a", "tenants/red/pools/b"};
  Delta(2, {PoolObject("red", "a", 1), PoolObject("red", "b", 1)});
  Delta(3, {Removal("tenants/red/pools/a")});
  EXPECT_TRUE(engine->has_waiting());
  Full(4, {TenantObject("red")});
  EXPECT_FALSE(engine->has_waiting());
  target.without_sockets.clear();
  EXPECT_EQ(engine->Retry(), 0u);
  EXPECT_TRUE(target.pools.empty());
}

TEST_F(EngineTest, Peers_ReachTheGatewayWithTheirAddresses) {
  const auto peer = [](const char* id, const std::vector<const char*>& addresses) {
    ConfigObject object;
    object.set_name(std::string("gateways/") + id);
    object.mutable_peer()->set_name(object.name());
    for (const char* address : addresses) object.mutable_peer()->add_addresses(address);
    return object;
  };
  Full(1, {peer("h", {"192.0.2.1", "2001:db8::1"}), peer("i", {"192.0.2.2"})});
  EXPECT_EQ(target.peers.at("gateways/h"),
            (std::vector{*wire::ParseGid("192.0.2.1"), *wire::ParseGid("2001:db8::1")}));
  EXPECT_EQ(Rejections(Delta(2, {peer("h", {"nowhere"}), Removal("gateways/i")})),
            Texts{"gateways/h: INVALID"});
  EXPECT_EQ(target.peers.size(), 1u);
  EXPECT_EQ(target.peers.at("gateways/h").size(), 2u);
  Make();
  EXPECT_EQ(target.peers.at("gateways/h").size(), 2u) << "after a restart too";
  Full(3, {});
  EXPECT_TRUE(target.peers.empty());
}

TEST_F(EngineTest, Capacity_IsTheOperatorsElseTheGatewaysOwn) {
  Full(1, {GatewayObject(50), TenantObject("red"), PoolObject("red", "a", 40)});
  EXPECT_EQ(target.capacity[tenant::Resource::kQps], 50u);
  EXPECT_EQ(target.capacity[tenant::Resource::kMrs], tenant::kUnlimited);
  EXPECT_EQ(Rejections(Delta(2, {GatewayObject(30)})), Texts{"gateways/g: NO_CAPACITY"});
  EXPECT_EQ(target.capacity[tenant::Resource::kQps], 50u);
  EXPECT_EQ(Rejections(Delta(3, {GatewayObject()})), Texts());
  EXPECT_EQ(target.capacity[tenant::Resource::kQps], 100u);
}

TEST_F(EngineTest, AddressOfTwoPools_TheFirstHasItAndItCanMove) {
  const auto pool = [](const char* id, const char* address) {
    ConfigObject object = PoolObject("red", id);
    if (address != nullptr) object.mutable_pool()->mutable_spec()->add_addresses(address);
    return object;
  };
  EXPECT_EQ(
      Rejections(Full(1, {TenantObject("red"), pool("b", "192.0.2.1"), pool("a", "192.0.2.1")})),
      Texts{"tenants/red/pools/a: ADDRESS_TAKEN"});
  EXPECT_EQ(Rejections(Delta(2, {pool("a", "192.0.2.1")})),
            Texts{"tenants/red/pools/a: ADDRESS_TAKEN"});
  EXPECT_EQ(Rejections(Delta(3, {pool("a", "192.0.2.1"), pool("b", nullptr)})), Texts());
}

// An address that is missing for a moment must not cost the pool its sockets.
TEST_F(EngineTest, RestartWithAnAddressGone_ThePoolStays) {
  Full(1, {TenantObject("red"), PoolObject("red", "a")});
  away.insert("tenants/red/pools/a");
  Make();
  EXPECT_TRUE(target.pools.contains("tenants/red/pools/a"));
  EXPECT_EQ(Rejections(Delta(2, {PoolObject("red", "a", 3)})),
            Texts{"tenants/red/pools/a: ADDRESS_NOT_HERE"});
}

// Programs of other slots continue, and missing sockets follow when possible.
TEST_F(EngineTest, RestartWithoutSockets_ThePoolStaysAndIsTold) {
  Full(1, {TenantObject("red"), PoolObject("red", "a", 5)});
  socketless = {"tenants/red/pools/a"};
  Make();
  EXPECT_EQ(CommittedQps("tenants/red/pools/a"), 5u);
  EXPECT_EQ(Rejections(Delta(2, {})), Texts{"tenants/red/pools/a: SOCKET_FAILED"});
  EXPECT_TRUE(target.pools.contains("tenants/red/pools/a"));
  target.without_sockets.clear();
  EXPECT_EQ(engine->Retry(), 1u);
  EXPECT_TRUE(target.sockets.contains("tenants/red/pools/a"));
  EXPECT_EQ(Rejections(Delta(3, {})), Texts());
}

TEST_F(EngineTest, TargetObjects_PoolIsRejectedWithItsReason) {
  target.refused.insert("tenants/red/pools/a");
  EXPECT_EQ(Rejections(Full(1, {TenantObject("red"), PoolObject("red", "a")})),
            Texts{"tenants/red/pools/a: ADDRESS_NOT_HERE"});
  EXPECT_TRUE(target.pools.empty());
}

TEST_F(EngineTest, CcPolicy_ReachesPoolsThatNameIt) {
  ConfigObject pool = PoolObject("red", "a");
  pool.mutable_pool()->mutable_spec()->set_cc_policy("ccPolicies/slow");
  Full(1, {TenantObject("red"), PolicyObject("slow", 65536), pool});
  EXPECT_EQ(target.pools.at("tenants/red/pools/a").window_bytes, 65536u);
  Delta(2, {PolicyObject("slow", 32768)});
  EXPECT_EQ(target.pools.at("tenants/red/pools/a").window_bytes, 32768u);
  EXPECT_EQ(Rejections(Delta(3, {Removal("ccPolicies/slow")})), Texts{"ccPolicies/slow: IN_USE"});
}

TEST_F(EngineTest, Restart_RunsWhatRanWithItsRejections) {
  ConfigObject bad = PoolObject("red", "b");
  bad.mutable_pool()->mutable_spec()->set_slots(5000);
  Full(4, {TenantObject("red"), PoolObject("red", "a", 5), bad});
  Make({TenantObject("static")});
  EXPECT_TRUE(started.ok()) << started.text();
  EXPECT_EQ(engine->source(), kStore);
  EXPECT_EQ(engine->revision(), 4);
  EXPECT_EQ(CommittedQps("tenants/red/pools/a"), 5u);
  EXPECT_FALSE(target.tenants.contains("tenants/static"));
  const PushReport report = Delta(5, {PoolObject("red", "c")});
  EXPECT_EQ(report.status(), APPLIED) << "a delta on it is enough";
  EXPECT_EQ(Rejections(report), Texts{"tenants/red/pools/b: INVALID"});
}

TEST_F(EngineTest, Static_RunsUntilSomethingWasApplied) {
  Make({TenantObject("static"), PoolObject("static", "a")});
  EXPECT_EQ(engine->source(), "static");
  EXPECT_TRUE(target.pools.contains("tenants/static/pools/a"));
  Full(1, {});
  EXPECT_TRUE(target.pools.empty());
  Make({TenantObject("static")});
  EXPECT_TRUE(target.tenants.empty());
}

TEST_F(EngineTest, DamagedStateFile_IsToldAndTheStaticRuns) {
  std::ofstream(folder + "/config.state") << "rocegw configuration 1\n\xFF\xFF garbage";
  Make({TenantObject("static")});
  EXPECT_FALSE(started.ok());
  EXPECT_NE(started.text().find("config.state"), std::string::npos);
  EXPECT_TRUE(target.tenants.contains("tenants/static"));
}

TEST_F(EngineTest, StateFileThatCannotBeWritten_IsTold) {
  std::filesystem::remove_all(folder);
  EXPECT_EQ(Full(1, {}).status(), APPLIED);
  EXPECT_NE(engine->write_problem().find("config.state"), std::string::npos);
}

TEST_F(EngineTest, Describe_TellsSourceObjectsAndRejections) {
  Full(4, {TenantObject("red"), PoolObject("blue", "a")});
  gateway::v1::GetConfigResponse config;
  engine->Describe(config);
  EXPECT_EQ(config.source(), kStore);
  EXPECT_EQ(config.applied_revision(), 4);
  ASSERT_EQ(config.objects_size(), 2);
  EXPECT_EQ(config.objects(1).name(), "tenants/red");
  ASSERT_EQ(config.rejections_size(), 1);
}

}  // namespace
}  // namespace rocegw::apply
