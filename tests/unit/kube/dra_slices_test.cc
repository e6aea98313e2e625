// SPDX-License-Identifier: Apache-2.0
// Data for the scheduler about a node: pools as devices in up-to-date ResourceSlices.
#include <gtest/gtest.h>

#include "agent/kube/dra/allocated_claim.h"
#include "agent/kube/dra/resource_slices.h"
#include "agent/kube/slot_keeper.h"
#include "tests/unit/kube/dra_fixture.h"

namespace rocegw::agent {
namespace {

using nlohmann::json;
using testing::kPool;
using testing::kResource;

TEST(DraDevices, NamesAreLabels_AndTellPoolsOfOneNameApart) {
  PoolOffer offer;
  offer.resource = "rocegw.io/red.train";
  offer.slots = {{"30c41873-0", "", ""}, {"30c41873-11", "", ""}};
  EXPECT_EQ(PoolDeviceName(offer), "red-train-30c41873");
  EXPECT_EQ(SlotDeviceName(offer, offer.slots[1]), "red-train-30c41873-11");
  offer.resource = "rocegw.io/" + std::string(60, 't') + "." + std::string(30, 'p');
  EXPECT_EQ(SlotDeviceName(offer, offer.slots[1]).size(), 63u);
  EXPECT_TRUE(SlotDeviceName(offer, offer.slots[1]).ends_with("-30c41873-11"));
}

TEST(DraDevices, ManyDevices_AreSeveralSlicesOfOnePool) {
  std::vector<json> devices(300, json{{"name", "x"}});
  const std::vector<json> slices = SlicesOf(devices, "n1", 7);
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[0]["devices"].size(), 128u);
  EXPECT_EQ(slices[2]["devices"].size(), 44u);
  for (const json& slice : slices) {
    EXPECT_EQ(slice["pool"], (json{{"name", "n1"}, {"generation", 7}, {"resourceSliceCount", 3}}));
  }
  EXPECT_EQ(SlicesOf({}, "n1", 1).size(), 1u) << "a node without devices says so";
}

json GoodClaim() {
  return {
      {"metadata", {{"namespace", "web"}, {"name", "c"}, {"uid", "u1"}}},
      {"status",
       {{"allocation",
         {{"devices",
           {{"results",
             {{{"driver", "rocegw.io"}, {"pool", "n1"}, {"device", "d"}, {"request", "rdma"}}}}}}}},
        {"reservedFor", {{{"resource", "pods"}, {"name", "a"}, {"uid", "p1"}}}}}}};
}

TEST(DraClaims, AllocatedClaim_NamesDevicesAndPod) {
  const auto claim = ReadAllocatedClaim(GoodClaim(), "u1", "n1");
  ASSERT_TRUE(claim.ok()) << claim.status().text();
  EXPECT_EQ(claim.value().devices, (std::vector<AllocatedDevice>{{"rdma", "d"}}));
  EXPECT_EQ(claim.value().pod, (PodName{"web", "a"}));
  EXPECT_EQ(claim.value().pod_uid, "p1");
}

TEST(DraClaims, WhatCannotBePrepared_IsRefusedWithAReason) {
  const auto spoiled = [](const std::function<void(json&)>& change) {
    json claim = GoodClaim();
    change(claim);
    const auto read = ReadAllocatedClaim(claim, "u1", "n1");
    return read.ok() ? std::string("good") : read.status().text();
  };
  EXPECT_NE(spoiled([](json& c) { c["metadata"]["uid"] = "u2"; }).find("another one"),
            std::string::npos);
  EXPECT_NE(spoiled([](json& c) { c["status"].erase("allocation"); }).find("not allocated"),
            std::string::npos);
  const auto result = [](json& c) -> json& {
    return c["status"]["allocation"]["devices"]["results"][0];
  };
  EXPECT_NE(spoiled([&](json& c) { result(c)["driver"] = "x"; }).find("nothing of rocegw"),
            std::string::npos);
  EXPECT_NE(spoiled([&](json& c) { result(c)["pool"] = "n2"; }).find("on node n2"),
            std::string::npos);
  EXPECT_NE(spoiled([&](json& c) { result(c)["adminAccess"] = true; }).find("administrative"),
            std::string::npos);
  EXPECT_NE(spoiled([](json& c) { c["status"].erase("reservedFor"); }).find("for no pod"),
            std::string::npos);
  EXPECT_NE(
      spoiled([](json& c) {
        c["status"]["reservedFor"].push_back({{"resource", "pods"}, {"name", "b"}, {"uid", "p2"}});
      }).find("for 2 pods"),
      std::string::npos);
  EXPECT_NE(
      spoiled([](json& c) { c["status"]["reservedFor"][0]["resource"] = "jobs"; }).find("no pod"),
      std::string::npos);
  EXPECT_FALSE(ReadAllocatedClaim(json::parse("[]"), "u1", "n1").ok());
}

TEST_F(DraNode, Pool_IsADeviceWithAttributesAndSharedAmounts) {
  OnLoop([&] {
    gateway.AddPool(kPool, "30c41873", 4, {"web"});
    auto& peak = *gateway.config.mutable_objects(0)
                      ->mutable_pool()
                      ->mutable_spec()
                      ->mutable_quota()
                      ->mutable_peak();
    peak.set_qps(1000);
    peak.set_bytes_per_second(1250000000);
  });
  StartAgent();
  ASSERT_TRUE(Until([&] { return Devices().size() == 1; }));
  const json device = Devices().front();
  EXPECT_EQ(device["name"], "red-train-30c41873");
  EXPECT_EQ(device["attributes"]["tenant"]["string"], "red");
  EXPECT_EQ(device["attributes"]["pool"]["string"], "train");
  EXPECT_EQ(device["allowMultipleAllocations"], true);
  EXPECT_EQ(device["capacity"]["slots"]["value"], "4");
  EXPECT_EQ(device["capacity"]["slots"]["requestPolicy"]["validValues"], json::array({"1"}));
  EXPECT_EQ(device["capacity"]["qps"]["value"], "1000");
  EXPECT_EQ(device["capacity"]["qps"]["requestPolicy"]["default"], "250");
  EXPECT_EQ(device["capacity"]["bandwidth"]["value"], "10000000000") << "bits per second";
  const json slice = server->List(kSlices).front();
  EXPECT_EQ(slice["spec"]["driver"], "rocegw.io");
  EXPECT_EQ(slice["spec"]["nodeName"], "n1");
  EXPECT_EQ(slice["metadata"]["ownerReferences"][0]["uid"], "uid-of-n1");
  EXPECT_TRUE(kubelet->Devices(kResource).empty()) << "no slot is offered in two ways";
}

TEST_F(DraNode, PoolThatIsNotNamed_IsForLimits) {
  dra.pools = {"tenants/red/pools/claims"};
  OnLoop([&] {
    gateway.AddPool(kPool, "30c41873", 2, {"web"});
    gateway.AddPool("tenants/red/pools/claims", "77777777", 2, {"web"});
  });
  StartAgent();
  ASSERT_TRUE(kubelet->WaitHealthy(kResource, 2));
  ASSERT_TRUE(Until([&] { return Devices().size() == 1; }));
  EXPECT_EQ(Devices().front()["name"], "red-claims-77777777");
  EXPECT_EQ(kubelet->registrations("rocegw.io/red.claims"), 0);
}

TEST_F(DraNode, PoolGone_DeviceGoesWithANewGeneration) {
  StartWithPool();
  const int64_t before = server->List(kSlices).front()["spec"]["pool"]["generation"];
  OnLoop([&] { gateway.RemovePools(); });
  EXPECT_TRUE(Until([&] { return Devices().empty(); }));
  EXPECT_GT(server->List(kSlices).front()["spec"]["pool"]["generation"], before);
}

// The scheduler must not lose the node's devices for a moment.
TEST_F(DraNode, AgentStartsAnew_WritesNothing) {
  StartWithPool();
  StopAgent();
  const size_t before = server->calls().size();
  StartAgent();
  ASSERT_TRUE(claims->Register("rocegw.io"));
  ASSERT_TRUE(Until([&] { return server->calls().size() >= before + 4; }));
  const auto all = server->calls();
  for (size_t i = before; i < all.size(); ++i) EXPECT_TRUE(all[i].starts_with("GET")) << all[i];
  EXPECT_EQ(Devices().size(), 1u);
}

TEST_F(DraNode, GatewayAway_TakesItsDevicesAlong) {
  StartWithPool();
  OnLoop([&] { gateway.away = true; });
  EXPECT_TRUE(Until([&] { return Devices().empty(); }));
  OnLoop([&] { gateway.away = false; });
  EXPECT_TRUE(Until([&] { return Devices().size() == 1; }));
}

// The API server writes "1000" as "1k": that is no change, another amount is.
TEST_F(DraNode, Amounts_AreComparedAsNumbers) {
  server->OnWrite([](json& object) {
    for (json& device : object["spec"]["devices"]) {
      json& value = device["capacity"]["qps"]["value"];
      if (value == "1000") value = "1k";
    }
  });
  const auto set_qps = [&](uint64_t qps) {
    auto& pool = *gateway.config.mutable_objects(0)->mutable_pool();
    pool.mutable_spec()->mutable_quota()->mutable_peak()->set_qps(qps);
    gateway.status.set_applied_revision(gateway.status.applied_revision() + 1);
  };
  OnLoop([&] {
    gateway.AddPool(kPool, "30c41873", 4, {"web"});
    set_qps(1000);
  });
  StartAgent();
  ASSERT_TRUE(Until([&] { return Devices().size() == 1; }));
  const size_t before = server->calls().size();
  ASSERT_TRUE(Until([&] { return server->calls().size() >= before + 3; }));
  const auto all = server->calls();
  for (size_t i = before; i < all.size(); ++i) EXPECT_TRUE(all[i].starts_with("GET")) << all[i];
  OnLoop([&] { set_qps(2000); });
  EXPECT_TRUE(Until([&] { return Devices().front()["capacity"]["qps"]["value"] == "2000"; }));
}

TEST_F(DraNode, SlicesThatKubeletRemoved_ComeBack) {
  StartWithPool();
  server->Remove(std::string(kSlices) + "/n1-rocegw.io-0");
  EXPECT_TRUE(Until([&] { return !Devices().empty(); }));
}

TEST_F(DraNode, SlicesOfOthers_AreLeftAlone) {
  const json other = {{"metadata", {{"name", "gpu"}}},
                      {"spec", {{"driver", "gpu.example.com"}, {"nodeName", "n1"}}}};
  const json neighbour = {{"metadata", {{"name", "n2-rocegw.io-0"}}},
                          {"spec", {{"driver", "rocegw.io"}, {"nodeName", "n2"}}}};
  server->Put(std::string(kSlices) + "/gpu", other);
  server->Put(std::string(kSlices) + "/n2-rocegw.io-0", neighbour);
  StartWithPool();
  OnLoop([&] { gateway.RemovePools(); });
  EXPECT_TRUE(Until([&] { return Devices().empty(); }));
  EXPECT_TRUE(server->Find(std::string(kSlices) + "/gpu").has_value());
  EXPECT_TRUE(server->Find(std::string(kSlices) + "/n2-rocegw.io-0").has_value());
}

// Kubernetes 1.34 and 1.35 without the feature gate DRAConsumableCapacity.
TEST_F(DraNode, ClusterThatCannotShare_GetsADeviceForEachSlot) {
  server->OnWrite([](json& object) {
    for (json& device : object["spec"]["devices"]) {
      device.erase("allowMultipleAllocations");
      for (auto& [name, capacity] : device["capacity"].items()) capacity.erase("requestPolicy");
    }
  });
  AddPool(3);
  StartAgent();
  ASSERT_TRUE(Until([&] { return Devices().size() == 3; }));
  EXPECT_EQ(Devices()[2]["name"], "red-train-30c41873-2");
  const size_t calls = server->calls().size();
  ASSERT_TRUE(Until([&] { return server->calls().size() > calls + 3; }));
  const auto all = server->calls();
  for (size_t i = calls + 1; i < all.size(); ++i)
    EXPECT_TRUE(all[i].starts_with("GET")) << all[i] << ": it is as it should be";
}

TEST_F(DraNode, ApiServerWithoutTheGroup_IsAskedAgainLater) {
  server->FailWith(404);
  AddPool();
  StartAgent();
  ASSERT_TRUE(Until([&] { return server->calls().size() >= 2; }));
  EXPECT_TRUE(Devices().empty());
  server->FailWith(0);
  EXPECT_TRUE(Until([&] { return !Devices().empty(); }));
}

}  // namespace
}  // namespace rocegw::agent
