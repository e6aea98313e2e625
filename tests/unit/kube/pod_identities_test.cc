// SPDX-License-Identifier: Apache-2.0
// Pools for service accounts by name and for namespaces by label: only the API server's data about
// a pod decides; without it no pod is admitted.
#include "agent/kube/pods/pod_identities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "agent/kube/pods/pod_rules.h"
#include "tests/support/apiserver/fake_api_server.h"
#include "tests/unit/kube/node_fixture.h"

namespace rocegw::agent {
namespace {

using testing::FakeApiServer;
using testing::kPool;
using testing::kResource;
using testing::kUid;

constexpr char kStrangerUid[] = "0a1b2c3d-0001-4000-8000-00000000000b";

std::string PathOf(const std::string& uid) { return "/kubepods/burstable/pod" + uid + "/c"; }

TEST(PodRules, EachPartOfARule_MustHold) {
  const std::vector<PodRule> rules{{"web", "trainer", {}}, {"", "", {{"team", "ml"}}}};
  const PodName web{"web", "a"};
  const PodName batch{"batch", "b"};
  EXPECT_EQ(Admits(rules, web, std::nullopt), PodAdmission::kUnknown);
  EXPECT_EQ(Admits(rules, web, PodIdentity{"trainer", {}}), PodAdmission::kAdmitted);
  EXPECT_EQ(Admits(rules, web, PodIdentity{"default", {}}), PodAdmission::kRefused);
  EXPECT_EQ(Admits(rules, batch, PodIdentity{"trainer", {}}), PodAdmission::kRefused);
  EXPECT_EQ(Admits(rules, batch, PodIdentity{"x", {{"team", "ml"}}}), PodAdmission::kAdmitted);
  EXPECT_EQ(Admits(rules, batch, PodIdentity{"x", {{"team", "web"}}}), PodAdmission::kRefused);
  // Both parts, and a rule without any.
  const std::vector<PodRule> both{{"", "trainer", {{"team", "ml"}, {"stage", "live"}}}};
  EXPECT_EQ(Admits(both, web, PodIdentity{"trainer", {{"team", "ml"}}}), PodAdmission::kRefused);
  EXPECT_EQ(Admits(both, web, PodIdentity{"trainer", {{"team", "ml"}, {"stage", "live"}}}),
            PodAdmission::kAdmitted);
  EXPECT_EQ(Admits({{"", "", {}}}, web, PodIdentity{"trainer", {}}), PodAdmission::kRefused);
  EXPECT_EQ(Admits({{"web", "", {}}}, web, std::nullopt), PodAdmission::kAdmitted);
}

class NodeOfACluster : public Node {
 protected:
  NodeOfACluster() {
    std::filesystem::create_directory(root + "/api");
    server = std::make_unique<FakeApiServer>(root + "/api");
    kubelet->Start();
    AddPool();
  }
  // Creates the API server without an agent that uses it.
  void ConnectApi() {
    kubeapi::ApiServerSettings settings = server->settings();
    settings.time_limit = std::chrono::milliseconds(2000);
    api.emplace(std::move(settings));
  }
  types::v1::ServiceAccount& Account(int at) {
    auto& attach =
        *gateway.config.mutable_objects(0)->mutable_pool()->mutable_spec()->mutable_attach();
    while (attach.service_accounts_size() <= at) attach.add_service_accounts();
    return *attach.mutable_service_accounts(at);
  }
  // Assigns slot 0 to a pod.
  void Admit(const std::string& name_space, const std::string& pod) {
    ASSERT_TRUE(kubelet->WaitHealthy(kResource, 3));
    ASSERT_EQ(kubelet->Admit(name_space, pod, kResource).problem, "");
  }
  int CallsWith(const std::string& part) const {
    const auto calls = server->calls();
    return static_cast<int>(std::ranges::count_if(
        calls, [&](const std::string& call) { return call.find(part) != std::string::npos; }));
  }

  std::unique_ptr<FakeApiServer> server;
};

TEST_F(NodeOfACluster, AccountByName_LetsItsPodIn) {
  ConnectApi();
  OnLoop([&] { Account(0).set_name("trainer"); });
  StartAgent();
  Admit("web", "a");
  server->PutNamespace("web", {});
  server->PutPod("web", "a", kUid, "trainer");
  EXPECT_EQ(Ask(PathOf(kUid), 0).reason, "");
  EXPECT_EQ(Ask(PathOf(kUid), 0).reason, "");
  EXPECT_EQ(CallsWith("/pods/a"), 1) << "a pod's account never changes";
}

TEST_F(NodeOfACluster, AnotherAccountOfTheNamespace_IsToldWhy) {
  ConnectApi();
  OnLoop([&] { Account(0).set_name("trainer"); });
  StartAgent();
  Admit("web", "a");
  server->PutNamespace("web", {});
  server->PutPod("web", "a", kUid, "default");
  EXPECT_EQ(Ask(PathOf(kUid), 0).reason,
            "pod web/a: tenants/red/pools/train is for account trainer of namespace web only, its "
            "account is default");
}

TEST_F(NodeOfACluster, LabelsOfTheNamespace_LetItsPodsIn) {
  ConnectApi();
  OnLoop([&] {
    Account(0).clear_namespace_();
    (*Account(0).mutable_namespace_labels())["team"] = "ml";
  });
  StartAgent();
  Admit("batch", "b");
  server->PutPod("batch", "b", kUid, "default");
  server->PutNamespace("batch", {{"team", "web"}});
  EXPECT_EQ(Ask(PathOf(kUid), 0).reason,
            "pod batch/b: tenants/red/pools/train is for namespaces with team=ml only, its account "
            "is default");
  StopAgent();
  server->PutNamespace("batch", {{"team", "ml"}});
  StartAgent();
  EXPECT_EQ(Ask(PathOf(kUid), 0).reason, "");
}

// The name was given to another pod since: the answer does not concern the program's pod.
TEST_F(NodeOfACluster, PodOfAnotherUid_IsNotTaken) {
  ConnectApi();
  OnLoop([&] { Account(0).set_name("trainer"); });
  StartAgent();
  Admit("web", "a");
  server->PutNamespace("web", {});
  server->PutPod("web", "a", kStrangerUid, "trainer");
  const Verdict verdict = Ask(PathOf(kUid), 0);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_NE(verdict.reason.find("is another one than the program's"), std::string::npos)
      << verdict.reason;
}

TEST_F(NodeOfACluster, ApiServerSaysNothing_NobodyGetsIn) {
  ConnectApi();
  OnLoop([&] { Account(0).set_name("trainer"); });
  StartAgent();
  Admit("web", "a");
  EXPECT_NE(Ask(PathOf(kUid), 0).reason.find("404"), std::string::npos) << "no such pod";
  server->PutNamespace("web", {});
  server->PutPod("web", "a", kUid, "trainer");
  for (const int status : {403, 429, 500}) {
    server->FailWith(status);
    EXPECT_NE(Ask(PathOf(kUid), 0).reason.find(std::to_string(status)), std::string::npos);
  }
  server->FailWith(0);
  EXPECT_TRUE(Ask(PathOf(kUid), 0).allowed) << "no failure is remembered";
  // A known pod is admitted without the API server while the labels are fresh.
  server.reset();
  EXPECT_TRUE(Ask(PathOf(kUid), 0).allowed);
}

TEST_F(NodeOfACluster, AgentThatMayNotAsk_SaysSo) {
  OnLoop([&] { Account(0).set_name("trainer"); });
  StartAgent();
  Admit("web", "a");
  const Verdict verdict = Ask(PathOf(kUid), 0);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_NE(verdict.reason.find("kubernetes.api_server"), std::string::npos) << verdict.reason;
}

// Most pools: neither the API server nor its permissions are needed.
TEST_F(NodeOfACluster, NamespaceAlone_AsksNobody) {
  ConnectApi();
  OnLoop([&] {
    Account(1).set_namespace_("batch");
    Account(1).set_name("trainer");
  });
  StartAgent();
  Admit("web", "a");
  EXPECT_EQ(Ask(PathOf(kUid), 0).reason, "");
  EXPECT_TRUE(server->calls().empty());
}

// An MPI launch: one query for all its programs.
TEST_F(NodeOfACluster, ProgramsOfOnePod_ShareAQuestion) {
  ConnectApi();
  OnLoop([&] { Account(0).set_name("trainer"); });
  StartAgent();
  Admit("web", "a");
  server->PutNamespace("web", {});
  server->PutPod("web", "a", kUid, "trainer");
  constexpr int kPrograms = 64;
  std::vector<std::promise<Verdict>> told(kPrograms);
  OnLoop([&] {
    for (auto& one : told) {
      gateway::v1::HeldAttach attach;
      attach.set_pool(kPool);
      attach.set_socket(testing::PoolsGateway::Socket("30c41873", 0));
      attach.set_cgroup(PathOf(kUid));
      agent->verdicts().Ask(attach, [&](const Verdict& said) { one.set_value(said); });
    }
  });
  for (auto& one : told) EXPECT_EQ(one.get_future().get().reason, "");
  EXPECT_EQ(CallsWith("/pods/a"), 1);
  EXPECT_EQ(CallsWith("GET /api/v1/namespaces/web"), 2) << "the pod and its namespace";
}

}  // namespace
}  // namespace rocegw::agent
