// SPDX-License-Identifier: Apache-2.0
// Offer of pools to a cluster, holders of slots, and admission of attaches.
#include "agent/kube/slot_keeper.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tests/unit/kube/pools_gateway.h"

namespace rocegw::agent {
namespace {

using gateway::v1::HeldAttach;
using testing::kPool;
using testing::kResource;
using testing::kUid;
using testing::PoolsGateway;

constexpr char kOtherUid[] = "0a1b2c3d-0001-4000-8000-00000000000b";
constexpr char kThirdUid[] = "0a1b2c3d-0001-4000-8000-00000000000c";

std::string Underscored(std::string uid) {
  std::ranges::replace(uid, '-', '_');
  return uid;
}

std::string CgroupOf(const std::string& uid) {
  return "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + Underscored(uid) +
         ".slice/cri-containerd-77.scope";
}

TEST(Offer, PoolsThatNameNamespaces_AreResources) {
  ControlLoop loop;
  PoolsGateway gateway(loop);
  gateway.AddPool("tenants/red/pools/b", "30c41873", 2, {"web", "batch"});
  gateway.AddPool("tenants/red/pools/hosts", "11111111", 1, {});
  gateway.AddPool("tenants/blue/pools/a", "22222222", 0, {"web"});
  gateway.AddPool("tenants/blue/pools/recorded", "33333333", 1, {"web"});
  gateway.config.mutable_objects(3)->mutable_pool()->mutable_spec()->mutable_attach()->set_identity(
      types::v1::RECORDED);
  const std::vector<PoolOffer> offers = OfferOf(gateway.config, gateway.usages);
  ASSERT_EQ(offers.size(), 2u) << "not one that names nobody, nor one where everybody gets in";
  EXPECT_EQ(offers[0].resource, "rocegw.io/blue.a");
  EXPECT_TRUE(offers[0].slots.empty());
  EXPECT_EQ(offers[1].resource, "rocegw.io/red.b");
  EXPECT_EQ(offers[1].pods, (std::vector<PodRule>{{"web", "", {}}, {"batch", "", {}}}));
  EXPECT_EQ(offers[1].slots[1], (Slot{"30c41873-1", "/run/rocegw/a/30c41873/1",
                                      "/run/rocegw/a/30c41873/1/attach.sock"}));
  gateway.usages[0].set_leaving(true);
  EXPECT_TRUE(OfferOf(gateway.config, gateway.usages)[1].slots.empty());
}

TEST(Offer, AtMostAHundred) {
  ControlLoop loop;
  PoolsGateway gateway(loop);
  for (int i = 0; i < 150; ++i)
    gateway.AddPool("tenants/t/pools/p" + std::to_string(i), "a" + std::to_string(i), 1, {"web"});
  EXPECT_EQ(OfferOf(gateway.config, gateway.usages).size(), kMostOffers);
}

class Keeper : public ::testing::Test {
 protected:
  Keeper() {
    EXPECT_TRUE(loop.Open().ok());
    gateway.AddPool(kPool, "30c41873", 3, {"web"});
    Make("");
  }
  ~Keeper() override {
    std::error_code ignored;
    if (!logs.empty()) std::filesystem::remove_all(logs, ignored);
  }
  void Make(const std::string& pod_logs) {
    keeper = std::make_unique<SlotKeeper>(
        loop, gateway, pod_logs, [this] { ++changes; }, Milliseconds(1));
    keeper->SetGatewayHealthy(true);
    keeper->SetOffers(OfferOf(gateway.config, gateway.usages), 1);
  }
  static HeldAttach Attach(int slot, const std::string& uid = kUid) {
    HeldAttach attach;
    attach.set_pool(kPool);
    attach.set_socket(PoolsGateway::Socket("30c41873", slot));
    attach.set_cgroup(CgroupOf(uid));
    return attach;
  }
  static Assignments Held(int slot, const std::string& name_space, const std::string& pod) {
    return {{{kResource, "30c41873-" + std::to_string(slot)}, {{name_space, pod}}}};
  }
  std::string Refusal(const HeldAttach& attach, const Assignments& assignments) {
    const Verdict verdict = keeper->Judge(attach, assignments).verdict;
    EXPECT_EQ(verdict.allowed, verdict.reason.empty());
    return verdict.reason;
  }
  bool Healthy(int slot) {
    const auto slots = keeper->Slots(kResource);
    const auto found =
        std::ranges::find(slots, "30c41873-" + std::to_string(slot), &OfferedSlot::id);
    return found != slots.end() && found->healthy;
  }
  template <typename Condition>
  void RunUntil(Condition condition) {
    for (int i = 0; i < 5000 && !condition(); ++i) loop.RunOnce(Milliseconds(2));
    EXPECT_TRUE(condition());
  }
  StatusOr<std::vector<Slot>> Allocate(const std::vector<std::string>& ids) {
    std::optional<StatusOr<std::vector<Slot>>> answer;
    keeper->Allocate(kResource, ids, [&](const auto& slots) { answer = slots; });
    RunUntil([&] { return answer.has_value(); });
    return *answer;
  }

  ControlLoop loop;
  PoolsGateway gateway{loop};
  std::unique_ptr<SlotKeeper> keeper;
  std::string logs;
  int changes = 0;
};

TEST_F(Keeper, Slots_HaveHealthAndPlace) {
  EXPECT_EQ(keeper->Resources(), std::vector<std::string>{kResource});
  EXPECT_EQ(keeper->Slots(kResource),
            (std::vector<OfferedSlot>{
                {"30c41873-0", true, 1}, {"30c41873-1", true, 1}, {"30c41873-2", true, 1}}));
  changes = 0;
  keeper->SetGatewayHealthy(true);
  keeper->SetOffers(OfferOf(gateway.config, gateway.usages), 1);
  EXPECT_EQ(changes, 0) << "nothing is other than before";
  keeper->SetGatewayHealthy(false);
  EXPECT_EQ(changes, 1);
  EXPECT_FALSE(Healthy(0));
  keeper->SetGatewayHealthy(true);
  EXPECT_TRUE(Healthy(0));
}

TEST_F(Keeper, PoolGone_IsKnownWithoutSlots) {
  gateway.RemovePools();
  keeper->SetOffers(OfferOf(gateway.config, gateway.usages), 1);
  EXPECT_EQ(keeper->Resources(), std::vector<std::string>{kResource});
  EXPECT_TRUE(keeper->Slots(kResource).empty());
  EXPECT_EQ(Allocate({"30c41873-0"}).status().error(), ENOENT);
}

TEST_F(Keeper, PodOfANamespaceOfThePool_GetsIn) {
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "a")), "");
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "a")), "") << "its second program";
}

TEST_F(Keeper, PodOfAForeignNamespace_IsToldWhy) {
  EXPECT_EQ(Refusal(Attach(1), Held(1, "evil", "a")),
            "pod evil/a: tenants/red/pools/train is for namespace web only");
}

TEST_F(Keeper, NobodysSlot_OtherSlot_OtherPool_AreRefused) {
  EXPECT_EQ(Refusal(Attach(1), {}), "kubelet has given slot 30c41873-1 to no pod");
  EXPECT_EQ(Refusal(Attach(1), Held(0, "web", "a")), "kubelet has given slot 30c41873-1 to no pod");
  HeldAttach elsewhere = Attach(1);
  elsewhere.set_socket("/run/rocegw/attach.sock");
  EXPECT_NE(Refusal(elsewhere, Held(1, "web", "a")).find("no slot of"), std::string::npos);
  HeldAttach other = Attach(1);
  other.set_pool("tenants/red/pools/hosts");
  EXPECT_NE(Refusal(other, Held(1, "web", "a")).find("is not for pods"), std::string::npos);
  HeldAttach outside = Attach(1);
  outside.set_cgroup("/system.slice");
  EXPECT_EQ(Refusal(outside, Held(1, "web", "a")), "it is in no pod");
}

// Both slots would be at the same path of the container, so one of them would hide the other.
TEST_F(Keeper, ContainerWithTwoPools_IsToldSo) {
  const Assignments two{{{kResource, "30c41873-1"}, {{"web", "a", true}}}};
  EXPECT_NE(Refusal(Attach(1), two).find("asks for more than one slot"), std::string::npos);
}

// A pod that mounted the directory of another pod's slot.
TEST_F(Keeper, AnotherPodAtTheSameSlot_IsRefused) {
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "a")), "");
  EXPECT_EQ(Refusal(Attach(1, kOtherUid), Held(1, "web", "a")),
            "slot 30c41873-1 belongs to another pod");
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "a")), "");
}

TEST_F(Keeper, PodLogs_TellTheFirstOneApartToo) {
  char pattern[] = "/tmp/rocegw-logs-XXXXXX";
  logs = ::mkdtemp(pattern);
  Make(logs);
  std::filesystem::create_directory(logs + "/web_a_" + kUid);
  EXPECT_EQ(Refusal(Attach(1, kOtherUid), Held(1, "web", "a")),
            "slot 30c41873-1 belongs to another pod");
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "a")), "");
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "b")), "slot 30c41873-1 is still being cleared")
      << "it has changed hands";
}

// kubelet lists a finished pod beside the one that has its device now.
TEST_F(Keeper, FinishedPodIsStillListed_ItsSuccessorGetsIn) {
  char pattern[] = "/tmp/rocegw-logs-XXXXXX";
  logs = ::mkdtemp(pattern);
  Make(logs);
  std::filesystem::create_directory(logs + "/web_a_" + kUid);
  std::filesystem::create_directory(logs + "/evil_b_" + kOtherUid);
  std::filesystem::create_directory(logs + "/web_c_" + kThirdUid);
  const DeviceKey device{kResource, "30c41873-1"};
  EXPECT_EQ(Refusal(Attach(1), {{device, {{"web", "a"}}}}), "");
  ASSERT_TRUE(Allocate({"30c41873-1"}).ok());
  for (const auto& holders : {std::vector<PodName>{{"web", "a"}, {"evil", "b"}},
                              std::vector<PodName>{{"evil", "b"}, {"web", "a"}}}) {
    EXPECT_EQ(Refusal(Attach(1, kOtherUid), {{device, holders}}),
              "pod evil/b: tenants/red/pools/train is for namespace web only");
  }
  const Assignments both{{device, {{"web", "c"}, {"web", "a"}}}};
  keeper->TakeAssignments(both);
  RunUntil([&] { return Healthy(1); });
  EXPECT_EQ(Refusal(Attach(1, kThirdUid), both), "");
  EXPECT_EQ(Refusal(Attach(1), both), "slot 30c41873-1 belongs to another pod");
  const size_t cleared = gateway.cleared.size();
  keeper->TakeAssignments(both);
  keeper->TakeAssignments({{device, {{"web", "c"}}}});
  EXPECT_EQ(gateway.cleared.size(), cleared) << "the successor keeps its slot";
  EXPECT_TRUE(Healthy(1));
  keeper->TakeAssignments({{device, {{"web", "a"}}}});
  EXPECT_FALSE(Healthy(1)) << "the successor has gone";
}

TEST_F(Keeper, FinishedPodIsStillListed_WithoutLogsBothMustBeOfThePool) {
  const DeviceKey device{kResource, "30c41873-1"};
  EXPECT_NE(Refusal(Attach(1), {{device, {{"web", "a"}, {"evil", "b"}}}}), "");
  EXPECT_EQ(Refusal(Attach(1), {{device, {{"web", "a"}, {"web", "b"}}}}), "");
}

TEST_F(Keeper, SlotChangesHands_IsClearedBeforeItCountsAsHealthy) {
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "a")), "");
  gateway.sessions[PoolsGateway::Socket("30c41873", 1)] = 3;
  keeper->TakeAssignments({});
  EXPECT_FALSE(Healthy(1));
  EXPECT_TRUE(Healthy(0));
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "b")), "slot 30c41873-1 is still being cleared");
  RunUntil([&] { return Healthy(1); });
  EXPECT_EQ(gateway.cleared, std::vector<std::string>(4, PoolsGateway::Socket("30c41873", 1)));
  EXPECT_EQ(Refusal(Attach(1, kOtherUid), Held(1, "web", "b")), "") << "the next one's now";
}

TEST_F(Keeper, GatewayAwayWhileASlotIsCleared_ItIsTriedUntilItIsDone) {
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "a")), "");
  gateway.away = true;
  keeper->TakeAssignments({});
  for (int i = 0; i < 20; ++i) loop.RunOnce(Milliseconds(2));
  EXPECT_FALSE(Healthy(1));
  gateway.away = false;
  RunUntil([&] { return Healthy(1); });
  EXPECT_EQ(gateway.cleared.size(), 1u);
}

TEST_F(Keeper, Allocate_ClearsAndForgetsWhoHadIt) {
  EXPECT_EQ(Refusal(Attach(1), Held(1, "web", "a")), "");
  gateway.sessions[PoolsGateway::Socket("30c41873", 1)] = 2;
  const auto slots = Allocate({"30c41873-1"});
  ASSERT_TRUE(slots.ok());
  EXPECT_EQ(slots.value().at(0).directory, "/run/rocegw/a/30c41873/1");
  EXPECT_EQ(gateway.sessions[PoolsGateway::Socket("30c41873", 1)], 0u);
  // A recreated pod of the same name.
  EXPECT_EQ(Refusal(Attach(1, kOtherUid), Held(1, "web", "a")), "");
}

TEST_F(Keeper, Allocate_WaitsForAGatewayThatIsStartedAnew) {
  gateway.away = true;
  std::optional<StatusOr<std::vector<Slot>>> answer;
  keeper->Allocate(kResource, {"30c41873-1"}, [&](const auto& slots) { answer = slots; });
  for (int i = 0; i < 20; ++i) loop.RunOnce(Milliseconds(2));
  EXPECT_FALSE(answer.has_value());
  gateway.away = false;
  RunUntil([&] { return answer.has_value(); });
  EXPECT_TRUE(answer->ok());
}

TEST_F(Keeper, Allocate_GatewayStaysAway_Fails) {
  gateway.away = true;
  EXPECT_EQ(Allocate({"30c41873-1"}).status().text(), "away");
  EXPECT_EQ(Allocate({"30c41873-9"}).status().error(), ENOENT);
}

}  // namespace
}  // namespace rocegw::agent
