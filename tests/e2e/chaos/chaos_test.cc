// SPDX-License-Identifier: Apache-2.0
// Three controllers on three etcd members with 200 agents, all real but for the gateways, while
// processes are killed and stopped at random and clients write. Afterwards: what was acknowledged
// is there, once; only who led reconciled; every gateway runs what it should.
//   ROCEGW_CHAOS_SECONDS  how long (75)
//   ROCEGW_TEST_SEED      repeats a run's faults
//   ROCEGW_CHAOS_DIR      folder for the event log and the controllers' logs, which stay
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <filesystem>

#include "controlplane/store/etcd/etcd_store.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"
#include "tests/e2e/chaos/faults.h"
#include "tests/e2e/chaos/verification.h"
#include "tests/e2e/chaos/workload.h"

namespace rocegw::testing::chaos {
namespace {

namespace fs = std::filesystem;

constexpr size_t kControllers = 3;
constexpr size_t kMembers = 3;
constexpr size_t kAgents = 200;
constexpr size_t kClients = 3;
constexpr char kRoot[] = "/fleet/";

std::chrono::seconds Duration() {
  const char* const text = std::getenv("ROCEGW_CHAOS_SECONDS");
  return std::chrono::seconds(text == nullptr ? 75 : std::max(20, std::atoi(text)));
}

std::string Folder(uint64_t seed) {
  const char* const given = std::getenv("ROCEGW_CHAOS_DIR");
  const std::string folder =
      given != nullptr ? std::string(given)
                       : (fs::temp_directory_path() /
                          ("rocegw-chaos-" + std::to_string(getpid()) + "-" + std::to_string(seed)))
                             .string();
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

class Lab {
 public:
  explicit Lab(uint64_t seed)
      : folder_(Folder(seed)), log_(folder_ + "/events.log"), etcd_(kMembers) {
    std::string endpoints;
    for (const std::string& endpoint : etcd_.Options(kRoot).endpoints)
      endpoints += (endpoints.empty() ? "'" : ", '") + endpoint + "'";
    const std::vector<int> ports = FreeTcpPorts(kControllers);
    for (size_t i = 0; i < kControllers; ++i) {
      const std::string directory = folder_ + "/controller" + std::to_string(i);
      fs::create_directories(directory);
      controllers_.push_back(std::make_unique<ControllerProgram>(ControllerProgram::Options{
          .program = CONTROLLER_PROGRAM,
          .directory = directory,
          .port = ports[i],
          .all_ports = ports,
          .more = "seal_interval: 2s\nstore: {backend: etcd, etcd: {endpoints: [" + endpoints +
                  "], root: " + kRoot + "}}\n"}));
      channels_.push_back(controllers_[i]->Admin());
    }
    // One authority for all.
    controllers_[0]->Start();
    AwaitReady(0);
    for (size_t i = 1; i < kControllers; ++i) {
      fs::create_directories(controllers_[i]->state_dir());
      fs::permissions(controllers_[i]->state_dir(), fs::perms::owner_all);
      for (const char* name : {"/ca.key", "/ca.crt"})
        fs::copy_file(controllers_[0]->state_dir() + name, controllers_[i]->state_dir() + name);
      controllers_[i]->Start();
    }
    for (size_t i = 1; i < kControllers; ++i) AwaitReady(i);
  }

  // Until it answers from the store.
  void AwaitReady(size_t controller) {
    const auto gateways = admin::v1::Gateways::NewStub(channels_[controller]);
    for (int tries = 0;; ++tries) {
      admin::v1::GetFleetProgressResponse progress;
      const grpc::Status status = gateways->GetFleetProgress(PatientContext().get(), {}, &progress);
      if (status.ok()) return;
      if (tries == 100)
        GiveUp("controller " + std::to_string(controller) + ": " + status.error_message());
    }
  }
  void CreateTenants() {
    for (size_t i = 0; i < kClients; ++i) {
      admin::v1::CreateTenantRequest request;
      request.mutable_tenant()->set_name("tenants/w" + std::to_string(i));
      types::v1::Tenant made;
      const grpc::Status status = admin::v1::Tenants::NewStub(channels_[0])
                                      ->CreateTenant(PatientContext().get(), request, &made);
      if (!status.ok()) GiveUp("tenant: " + status.error_message());
    }
  }
  // Who has the key of the housekeeper's election; the first one, if nobody yet.
  size_t Leader(store::Store& store) {
    const auto entry = store.Get("election/housekeeper");
    for (size_t i = 0; entry.ok() && entry.value().has_value() && i < kControllers; ++i) {
      if (entry.value()->value.ends_with(" process " + std::to_string(controllers_[i]->pid())))
        return i;
    }
    return 0;
  }

  const std::string folder_;
  EventLog log_;
  EtcdCluster etcd_;
  Faults::Controllers controllers_;
  Channels channels_;
};

TEST(Chaos, ControllersAndEtcdKilledAndStopped_LoseNothingAndConverge) {
  spdlog::set_level(spdlog::level::off);
  const uint64_t seed = TestSeed(std::random_device()());
  const std::chrono::seconds time = Duration();
  Lab lab(seed);
  std::printf("%lld s, events in %s/events.log\n", static_cast<long long>(time.count()),
              lab.folder_.c_str());
  std::fflush(stdout);
  lab.CreateTenants();
  AgentFleet agents({.directory = lab.folder_, .agents = kAgents, .remember = true});
  agents.Join(lab.channels_[0]);
  agents.Start();
  auto store = store::OpenEtcdStore(lab.etcd_.Options(kRoot));
  ASSERT_TRUE(store.ok()) << store.status().text();
  double seconds = 0;
  ASSERT_EQ(AwaitConvergence(**store, agents, std::chrono::seconds(60), seconds), "");
  lab.log_.Note("all agents are in sync; seed " + std::to_string(seed));

  Random random(seed);
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kClients; ++i)
    clients.push_back(std::make_unique<Client>(i, random.Bits(), lab.channels_, kAgents, lab.log_));
  Faults faults(lab.controllers_, lab.etcd_, random.Bits(), lab.log_);
  faults.Run(time, lab.Leader(**store));
  for (const auto& client : clients) client->Stop();
  faults.EndAll();
  lab.log_.Note("the faults are over");
  for (size_t i = 0; i < kControllers; ++i) lab.AwaitReady(i);

  EXPECT_EQ(faults.problem(), "");
  std::map<std::string, Register> objects;
  std::vector<std::string> acknowledged;
  uint64_t attempts = 0;
  uint64_t reads = 0;
  for (const auto& client : clients) {
    EXPECT_EQ(client->problem(), "");
    objects.insert(client->objects().begin(), client->objects().end());
    acknowledged.insert(acknowledged.end(), client->acknowledged().begin(),
                        client->acknowledged().end());
    attempts += client->attempts();
    reads += client->reads();
  }
  EXPECT_GT(acknowledged.size(), static_cast<size_t>(time.count())) << "hardly anything was done";
  EXPECT_EQ(CheckObjects(lab.channels_, objects), "");
  EXPECT_EQ(CheckAudit(**store, acknowledged), "");
  EXPECT_EQ(AwaitConvergence(**store, agents, std::chrono::seconds(60), seconds), "")
      << Standing(lab.channels_);
  Logs logs{.files = {}, .processes = faults.processes()};
  for (const auto& controller : lab.controllers_) logs.files.push_back(controller->log_file());
  size_t seals = 0;
  size_t terms = 0;
  EXPECT_EQ(CheckReconciler(**store, logs, seals, terms), "");
  EXPECT_GE(terms, 2u) << "the first leader was stopped for longer than its lease";
  EXPECT_GE(seals, 3u);
  char summary[256];
  std::snprintf(summary, sizeof summary,
                "%zu faults, %zu writes acknowledged of %llu attempts, %llu reads, %zu terms, %zu "
                "seals, converged after %.1f s",
                faults.count(), acknowledged.size(), static_cast<unsigned long long>(attempts),
                static_cast<unsigned long long>(reads), terms, seals, seconds);
  lab.log_.Note(summary);
  std::printf("%s\n", summary);
  if (!HasFailure() && std::getenv("ROCEGW_CHAOS_DIR") == nullptr) fs::remove_all(lab.folder_);
}

}  // namespace
}  // namespace rocegw::testing::chaos
