// SPDX-License-Identifier: Apache-2.0
// Claims of pods on a node: prepared once, answered the same again, kept over a restart of the
// agent, and released when unprepared.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <utility>

#include "tests/unit/kube/dra_fixture.h"

namespace rocegw::agent {
namespace {

using nlohmann::json;
using testing::ClaimOfAPod;
using testing::kUid;

constexpr char kDevice[] = "red-train-30c41873";
constexpr char kNeighbourUid[] = "0a1b2c3d-0001-4000-8000-00000000000b";

TEST_F(DraNode, Driver_RegistersForVersionOne) {
  StartWithPool();
  EXPECT_EQ(claims->info().name(), "rocegw.io");
  EXPECT_EQ(claims->info().endpoint(), claims->plugins_dir() + "/rocegw.io/dra.sock");
}

TEST_F(DraNode, Claim_IsPreparedAsASlotThatItsPodAttachesBy) {
  StartWithPool();
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  const auto prepared = claims->Prepare(claim);
  ASSERT_EQ(prepared.error(), "");
  ASSERT_EQ(prepared.devices_size(), 1);
  EXPECT_EQ(prepared.devices(0).pool_name(), "n1");
  EXPECT_EQ(prepared.devices(0).device_name(), kDevice);
  EXPECT_EQ(prepared.devices(0).request_names(0), "rdma");
  EXPECT_EQ(prepared.devices(0).cdi_device_ids(0), "rocegw.io/claim=30c41873-0");
  EXPECT_EQ(CdiFiles(), std::vector<std::string>{"rocegw-claim-30c41873-0.json"});
  const json spec = json::parse(std::ifstream(cdi_dir + "/rocegw-claim-30c41873-0.json"));
  EXPECT_EQ(spec["kind"], "rocegw.io/claim");
  EXPECT_EQ(spec["devices"][0]["containerEdits"]["mounts"][0]["hostPath"],
            "/run/rocegw/a/30c41873/0");
  OnLoop([&] {
    EXPECT_EQ(gateway.cleared,
              std::vector<std::string>{testing::PoolsGateway::Socket("30c41873", 0)})
        << "nothing of who had it before is left";
  });
  EXPECT_EQ(Ask(CgroupOfPod(kUid), 0).reason, "");
  EXPECT_EQ(Ask(CgroupOfPod(kNeighbourUid), 0).reason, "slot 30c41873-0 belongs to another pod");
  EXPECT_EQ(Ask(CgroupOfPod(kUid), 1).reason, "no claim of a pod has slot 30c41873-1");
}

TEST_F(DraNode, PreparedAgain_TellsTheSameAndClearsNothing) {
  StartWithPool();
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  const auto first = claims->Prepare(claim);
  ASSERT_EQ(first.error(), "");
  // As after a restart of the node, whose /run is empty.
  std::filesystem::remove(cdi_dir + "/rocegw-claim-30c41873-0.json");
  const auto second = claims->Prepare(claim);
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());
  EXPECT_EQ(CdiFiles().size(), 1u);
  OnLoop([&] { EXPECT_EQ(gateway.cleared.size(), 1u); });
}

TEST_F(DraNode, ClaimsOfOnePool_GetSlotsOfTheirOwn_UntilNoneIsFree) {
  StartWithPool(2);
  std::set<std::string> given;
  for (const char* const name : {"c1", "c2"}) {
    const auto prepared = claims->Prepare(Allocate(name, kDevice, name, kUid));
    ASSERT_EQ(prepared.error(), "");
    given.insert(prepared.devices(0).cdi_device_ids(0));
  }
  EXPECT_EQ(given.size(), 2u);
  const ClaimOfAPod third = Allocate("c3", kDevice, "c", kUid);
  EXPECT_NE(claims->Prepare(third).error().find("no slot of tenants/red/pools/train is free"),
            std::string::npos);
  EXPECT_EQ(claims->Unprepare({"web", "c1", "uid-of-c1"}), "");
  EXPECT_TRUE(Until([&] { return claims->Prepare(third).error().empty(); }));
}

TEST_F(DraNode, Unprepared_EndsItsProgramsAndLeavesNothing) {
  StartWithPool();
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  ASSERT_EQ(claims->Prepare(claim).error(), "");
  ASSERT_TRUE(Ask(CgroupOfPod(kUid), 0).allowed);
  // kubelet may unprepare after the claim was deleted, and more than once.
  server->Remove(PathOf(claim));
  EXPECT_EQ(claims->Unprepare(claim), "");
  EXPECT_EQ(claims->Unprepare(claim), "");
  EXPECT_TRUE(CdiFiles().empty());
  EXPECT_FALSE(Ask(CgroupOfPod(kUid), 0).allowed);
  OnLoop([&] { EXPECT_EQ(gateway.cleared.size(), 2u); });
}

TEST_F(DraNode, AgentStartsAnew_ClaimsStay) {
  StartWithPool();
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  const auto before = claims->Prepare(claim);
  ASSERT_EQ(before.error(), "");
  StopAgent();
  StartAgent();
  ASSERT_TRUE(claims->Register("rocegw.io"));
  ASSERT_TRUE(Until([&] { return Ask(CgroupOfPod(kUid), 0).allowed; }));
  EXPECT_EQ(claims->Prepare(claim).SerializeAsString(), before.SerializeAsString());
  const auto other = claims->Prepare(Allocate("c2", kDevice, "b", kNeighbourUid));
  ASSERT_EQ(other.error(), "");
  EXPECT_EQ(other.devices(0).cdi_device_ids(0), "rocegw.io/claim=30c41873-1")
      << "a slot that is held is not given again";
  OnLoop([&] { EXPECT_EQ(gateway.cleared.size(), 2u) << "one for each claim, none by a restart"; });
}

// The gateway enforces what the scheduler has counted.
TEST_F(DraNode, AmountsOfAClaim_AreLimitsOfItsPrograms) {
  StartWithPool();
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  json object = *server->Find(PathOf(claim));
  json& result = object["status"]["allocation"]["devices"]["results"][1];
  ASSERT_EQ(result["driver"], "rocegw.io");
  result["consumedCapacity"] = {{"slots", "1"}, {"qps", "64"}, {"bandwidth", "5G"}};
  server->Put(PathOf(claim), object);
  ASSERT_EQ(claims->Prepare(claim).error(), "");
  const auto limits = [&] {
    const Verdict verdict = Ask(CgroupOfPod(kUid), 0);
    EXPECT_TRUE(verdict.allowed) << verdict.reason;
    return std::pair<uint64_t, uint64_t>(verdict.limits.qps(), verdict.limits.bytes_per_second());
  };
  EXPECT_EQ(limits(), std::pair(uint64_t{64}, uint64_t{625'000'000}));
  StopAgent();
  StartAgent();
  ASSERT_TRUE(Until([&] { return Ask(CgroupOfPod(kUid), 0).allowed; }));
  EXPECT_EQ(limits(), std::pair(uint64_t{64}, uint64_t{625'000'000})) << "after a restart too";
}

TEST_F(DraNode, ClaimWithoutAmounts_HasThePoolsLimitsOnly) {
  StartWithPool();
  ASSERT_EQ(claims->Prepare(Allocate("c1", kDevice, "a", kUid)).error(), "");
  const Verdict verdict = Ask(CgroupOfPod(kUid), 0);
  EXPECT_TRUE(verdict.allowed) << verdict.reason;
  EXPECT_EQ(verdict.limits.qps(), 0u);
  EXPECT_EQ(verdict.limits.bytes_per_second(), 0u);
}

// kubelet's call does not come if its own records were lost, or the claim was deleted by force
// while the agent was away.
TEST_F(DraNode, ClaimThatEndedWhileTheAgentWasAway_IsReleased) {
  StartWithPool(1);
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  ASSERT_EQ(claims->Prepare(claim).error(), "");
  StopAgent();
  server->Remove(PathOf(claim));
  StartAgent();
  ASSERT_TRUE(claims->Register("rocegw.io"));
  EXPECT_TRUE(Until([&] { return CdiFiles().empty(); }));
  EXPECT_EQ(claims->Prepare(Allocate("c2", kDevice, "b", kNeighbourUid)).error(), "");
  OnLoop([&] {
    EXPECT_EQ(agent->claim_counters()->stale, 1u);
    EXPECT_EQ(agent->claim_counters()->prepared, 1u);
    EXPECT_EQ(gateway.cleared.size(), 3u) << "the release ends programs of the former pod";
  });
}

TEST_F(DraNode, ClaimThatItsPodHasNoMore_IsReleasedByTheNextReview) {
  claim_review = Milliseconds(50);
  StartWithPool();
  const ClaimOfAPod gone = Allocate("c1", kDevice, "a", kUid);
  const ClaimOfAPod other = Allocate("c2", kDevice, "b", kNeighbourUid);
  const ClaimOfAPod kept = Allocate("c3", kDevice, "c", kUid);
  for (const ClaimOfAPod& claim : {gone, other, kept})
    ASSERT_EQ(claims->Prepare(claim).error(), "");
  json object = *server->Find(PathOf(gone));
  object["status"]["reservedFor"] = json::array();
  server->Put(PathOf(gone), object);
  object = *server->Find(PathOf(other));
  object["metadata"]["uid"] = "uid-of-a-later-one";
  server->Put(PathOf(other), object);
  EXPECT_TRUE(Until([&] { return CdiFiles().size() == 1; }));
  OnLoop([&] { EXPECT_EQ(agent->claim_counters()->stale, 2u); });
  EXPECT_EQ(claims->Prepare(kept).error(), "");
}

TEST_F(DraNode, ApiServerThatDoesNotAnswer_ReleasesNoClaim) {
  claim_review = Milliseconds(20);
  StartWithPool();
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  ASSERT_EQ(claims->Prepare(claim).error(), "");
  for (const int failure : {500, 403}) {
    server->FailWith(failure);
    const size_t before = server->calls().size();
    EXPECT_TRUE(Until([&] { return server->calls().size() > before + 3; }));
  }
  EXPECT_EQ(CdiFiles().size(), 1u);
  OnLoop([&] { EXPECT_EQ(agent->claim_counters()->stale, 0u); });
}

TEST_F(DraNode, CheckpointOfAnEarlierAgent_WithoutNamesOfClaims_IsKept) {
  std::ofstream(dra.checkpoint)
      << R"({"version":1,"claims":{"u":{"namespace":"web","pod":"a","pod_uid":")" << kUid
      << R"(","devices":[{"request":"rdma","device":"d","resource":"rocegw.io/red.train",)"
      << R"("slot":"30c41873-0"}]}}})";
  claim_review = Milliseconds(20);
  StartWithPool();
  EXPECT_TRUE(Until([&] { return Ask(CgroupOfPod(kUid), 0).allowed; }));
  OnLoop([&] { EXPECT_EQ(agent->claim_counters()->prepared, 1u); });
}

TEST_F(DraNode, Counters_TellPreparationsAndTheirEnds) {
  StartWithPool();
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  ASSERT_EQ(claims->Prepare(claim).error(), "");
  EXPECT_NE(claims->Prepare(Allocate("c2", "red-train-99999999", "b", kUid)).error(), "");
  EXPECT_EQ(claims->Unprepare(claim), "");
  OnLoop([&] {
    const ClaimCounters& counters = *agent->claim_counters();
    EXPECT_EQ(counters.prepares, 1u);
    EXPECT_EQ(counters.refusals, 1u);
    EXPECT_EQ(counters.unprepares, 1u);
    EXPECT_EQ(counters.prepared, 0u);
    EXPECT_EQ(counters.devices, 1u);
    EXPECT_TRUE(counters.published);
  });
}

TEST_F(DraNode, DamagedCheckpoint_NothingIsGivenTwice) {
  std::ofstream(dra.checkpoint) << R"({"version":1,"claims":{"u":{"pod":3}}})";
  StartWithPool();
  EXPECT_NE(claims->Prepare(Allocate("c1", kDevice, "a", kUid)).error().find("is damaged"),
            std::string::npos);
}

TEST_F(DraNode, CheckpointThatCannotBeWritten_IsNoPreparation) {
  dra.checkpoint = root + "/missing/prepared-claims.json";
  StartWithPool();
  EXPECT_NE(claims->Prepare(Allocate("c1", kDevice, "a", kUid)).error(), "");
  EXPECT_FALSE(Ask(CgroupOfPod(kUid), 0).allowed);
}

TEST_F(DraNode, PodOfAForeignNamespace_IsToldAtThePreparation) {
  StartWithPool();
  EXPECT_EQ(claims->Prepare(Allocate("c1", kDevice, "thief", kUid, "evil")).error(),
            "pod evil/thief: tenants/red/pools/train is for namespace web only");
}

TEST_F(DraNode, ClaimForSeveralPods_IsRefused) {
  StartWithPool();
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  json object = *server->Find(PathOf(claim));
  object["status"]["reservedFor"].push_back(
      {{"resource", "pods"}, {"name", "b"}, {"uid", kNeighbourUid}});
  server->Put(PathOf(claim), object);
  EXPECT_NE(claims->Prepare(claim).error().find("a slot is for one"), std::string::npos);
}

TEST_F(DraNode, ApiServerOrDeviceGone_IsAnErrorThatKubeletTriesAgain) {
  StartWithPool();
  const ClaimOfAPod claim = Allocate("c1", kDevice, "a", kUid);
  server->FailWith(500);
  EXPECT_NE(claims->Prepare(claim).error().find("500"), std::string::npos);
  server->FailWith(0);
  EXPECT_EQ(claims->Prepare(claim).error(), "");
  EXPECT_NE(claims->Prepare(Allocate("c2", "red-train-99999999", "b", kUid))
                .error()
                .find("not on this node"),
            std::string::npos);
}

// Without shared devices the scheduler has chosen the slot.
TEST_F(DraNode, DeviceOfASlot_IsThatSlot) {
  dra.shared = false;
  StartWithPool();
  const auto prepared = claims->Prepare(Allocate("c1", std::string(kDevice) + "-2", "a", kUid));
  ASSERT_EQ(prepared.error(), "");
  EXPECT_EQ(prepared.devices(0).cdi_device_ids(0), "rocegw.io/claim=30c41873-2");
}

TEST_F(DraNode, SocketThatWasRemoved_IsMadeAnew) {
  StartWithPool();
  std::filesystem::remove(claims->registry_dir() + "/rocegw.io-reg.sock");
  EXPECT_TRUE(claims->Register("rocegw.io"));
  EXPECT_EQ(claims->Prepare(Allocate("c1", kDevice, "a", kUid)).error(), "");
}

}  // namespace
}  // namespace rocegw::agent
