// SPDX-License-Identifier: Apache-2.0
// A controller (the program itself, a process of its own, SQLite on disk) and 2,000 agents (the
// production agent with its own certificate, mTLS connection and streams) in this process, each
// over a gateway that takes everything at once. Measured:
//   change     one policy: from the answer to the write until the last agent's report is in
//   quotas     10,000 pools, each on 20 gateways: a change of every quota, until all are applied
//   reconnect  SIGKILL of the controller: from its new start until all agents are in sync again
//   memory     of the controller
// Ends with an error when an aim is missed. Smaller: --agents N --pools N.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rocegw/admin/v1/cc_policies.grpc.pb.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "rocegw/admin/v1/pools.grpc.pb.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"
#include "tests/bench/aims.h"
#include "tests/bench/measurement.h"
#include "tests/support/fleet/agent_fleet.h"
#include "tests/support/fleet/controller_program.h"

namespace rocegw::bench {
namespace {

constexpr int kGatewaysPerPool = 20;
constexpr int kPoolsPerTenant = 1;

[[noreturn]] void Die(const std::string& why) { testing::GiveUp("bench_fleet: " + why); }

void Check(const grpc::Status& status, const std::string& what) {
  if (!status.ok()) Die(what + ": " + status.error_message());
}

std::unique_ptr<grpc::ClientContext> Context() { return testing::PatientContext(); }

// A controller on SQLite, with its agents.
class Fleet {
 public:
  Fleet(const std::string& directory, int agents)
      : controller_({.program = std::filesystem::read_symlink("/proc/self/exe").parent_path() /
                                "rocegw-controller",
                     .directory = directory,
                     .port = testing::FreeTcpPorts(1).front()}),
        agents_({.directory = directory, .agents = static_cast<size_t>(agents)}) {
    controller_.Start();
    channel_ = controller_.Admin();
    gateways_ = admin::v1::Gateways::NewStub(channel_);
  }
  void Join() { agents_.Join(channel_); }
  void StartAgents() { agents_.Start(); }

  admin::v1::GetFleetProgressResponse Progress(int64_t revision) {
    admin::v1::GetFleetProgressRequest request;
    request.set_revision(revision);
    admin::v1::GetFleetProgressResponse progress;
    for (;;) {
      const grpc::Status status = gateways_->GetFleetProgress(Context().get(), request, &progress);
      // It was just killed, or begins.
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE) continue;
      Check(status, "progress");
      return progress;
    }
  }
  // Seconds until all agents have reported that they run everything.
  double AwaitInSync(int64_t revision, double give_up_s) {
    const double began = Seconds();
    for (;;) {
      const auto progress = Progress(revision);
      if (progress.in_sync() == agents_.size()) return Seconds() - began;
      if (Seconds() - began > give_up_s) {
        Die("after " + std::to_string(give_up_s) + " s only " + std::to_string(progress.in_sync()) +
            " of " + std::to_string(progress.connected()) + " connected agents are in sync");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  testing::ControllerProgram& controller() { return controller_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  testing::AgentFleet& agents() { return agents_; }

 private:
  testing::ControllerProgram controller_;
  testing::AgentFleet agents_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<admin::v1::Gateways::Stub> gateways_;
};

int64_t RevisionOf(const std::string& etag) { return std::atoll(etag.c_str() + 1); }

double MeasureChange(Fleet& fleet, uint64_t window) {
  const auto policies = admin::v1::CcPolicies::NewStub(fleet.channel());
  admin::v1::UpdateCcPolicyRequest request;
  request.mutable_cc_policy()->set_name("ccPolicies/bench");
  request.mutable_cc_policy()->mutable_spec()->set_window_bytes(window);
  request.set_allow_missing(true);
  types::v1::CcPolicy policy;
  Check(policies->UpdateCcPolicy(Context().get(), request, &policy), "policy");
  return fleet.AwaitInSync(RevisionOf(policy.meta().etag()), 60);
}

// Runs `one` for 0 .. count-1 on several connections' worth of threads.
void InParallel(int count, const std::function<void(int)>& one) {
  constexpr int kThreads = 32;
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int at = next++; at < count; at = next++) one(at);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

types::v1::Pool PoolAt(int at, int agents, uint64_t qps) {
  types::v1::Pool pool;
  pool.set_name("tenants/t" + std::to_string(at / kPoolsPerTenant) + "/pools/p" +
                std::to_string(at % kPoolsPerTenant));
  for (int i = 0; i < kGatewaysPerPool; ++i) {
    pool.mutable_spec()->mutable_gateways()->add_names(
        "gateways/g" + std::to_string((at * 7 + i * (agents / kGatewaysPerPool)) % agents));
  }
  pool.mutable_spec()->mutable_quota()->mutable_peak()->set_qps(qps);
  return pool;
}

struct QuotaResult {
  double create_s = 0;
  double settle_s = 0;
  double write_s = 0;
  double all_s = 0;
  uint64_t deliveries = 0;
};

QuotaResult MeasureQuotas(Fleet& fleet, int pools) {
  QuotaResult result;
  const int agents = static_cast<int>(fleet.agents().size());
  const auto tenants = admin::v1::Tenants::NewStub(fleet.channel());
  const auto stub = admin::v1::Pools::NewStub(fleet.channel());
  double began = Seconds();
  InParallel(pools, [&](int at) {
    admin::v1::CreateTenantRequest tenant;
    tenant.mutable_tenant()->set_name("tenants/t" + std::to_string(at));
    types::v1::Tenant made;
    Check(tenants->CreateTenant(Context().get(), tenant, &made), "tenant");
    admin::v1::CreatePoolRequest pool;
    *pool.mutable_pool() = PoolAt(at, agents, 1);
    types::v1::Pool answer;
    Check(stub->CreatePool(Context().get(), pool, &answer), "pool");
  });
  result.create_s = Seconds() - began;
  result.settle_s = fleet.AwaitInSync(0, 300);
  for (size_t i = 0; i < fleet.agents().size(); ++i) {
    fleet.agents().gateway(i).pools_with_it = 0;
    fleet.agents().gateway(i).wanted_qps = 2;
  }
  const auto delivered = [&] {
    uint64_t sum = 0;
    for (size_t i = 0; i < fleet.agents().size(); ++i)
      sum += fleet.agents().gateway(i).pools_with_it;
    return sum;
  };
  const uint64_t all = static_cast<uint64_t>(pools) * kGatewaysPerPool;
  began = Seconds();
  std::atomic<int64_t> last{0};
  InParallel(pools, [&](int at) {
    admin::v1::UpdatePoolRequest request;
    *request.mutable_pool() = PoolAt(at, agents, 2);
    request.mutable_update_mask()->add_paths("spec.quota");
    types::v1::Pool answer;
    Check(stub->UpdatePool(Context().get(), request, &answer), "quota");
    int64_t known = last;
    const int64_t mine = RevisionOf(answer.meta().etag());
    while (known < mine && !last.compare_exchange_weak(known, mine)) {
    }
  });
  result.write_s = Seconds() - began;
  fleet.AwaitInSync(last, 300);
  result.all_s = Seconds() - began;
  result.deliveries = delivered();
  if (result.deliveries < all)
    Die("only " + std::to_string(result.deliveries) + " of " + std::to_string(all) + " arrived");
  return result;
}

double MeasureReconnect(Fleet& fleet) {
  fleet.controller().Kill();
  const double began = Seconds();
  fleet.controller().Start();
  fleet.AwaitInSync(0, 120);
  return Seconds() - began;
}

size_t OpenSockets() {
  size_t sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error);
    sockets += target.starts_with("socket:") ? 1 : 0;
  }
  return sockets;
}

int Main(int argc, char** argv) {
  int agents = 2000;
  int pools = 10000;
  std::vector<char*> rest = {argv[0]};
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--agents") == 0 && i + 1 < argc) {
      agents = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--pools") == 0 && i + 1 < argc) {
      pools = std::atoi(argv[++i]);
    } else {
      rest.push_back(argv[i]);
    }
  }
  const Arguments arguments = ParseArguments(static_cast<int>(rest.size()), rest.data(), 5);
  if (agents < kGatewaysPerPool) Die("at least 20 agents");
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  signal(SIGPIPE, SIG_IGN);
  // Every agent says that its controller was killed.
  spdlog::set_level(spdlog::level::err);
  std::string pattern = (std::filesystem::temp_directory_path() / "rocegw-fleet-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) Die("no temporary directory");
  std::printf("%s\n", Machine().c_str());
  Aims aims;
  {
    Fleet fleet(pattern, agents);
    double began = Seconds();
    fleet.Join();
    std::printf("%d hosts joined in %.1f s\n", agents, Seconds() - began);
    began = Seconds();
    fleet.StartAgents();
    const double first = fleet.AwaitInSync(0, 300);
    std::printf("agents connected and in sync after %.2f s, %zu sockets\n", first, OpenSockets());
    std::vector<double> changes;
    for (int round = 0; round < arguments.rounds; ++round)
      changes.push_back(MeasureChange(fleet, 65536 + static_cast<uint64_t>(round) * 4096));
    const double change = Median(changes);
    const auto [best, worst] = std::minmax_element(changes.begin(), changes.end());
    std::printf("change     one policy on %d agents, %.3f to %.3f s\n", agents, *best, *worst);
    aims.AtMost("change", change, 1, "s, median");
    const double reconnect = MeasureReconnect(fleet);
    aims.AtMost("reconnect after SIGKILL", reconnect, 30, "s");
    const QuotaResult quotas = MeasureQuotas(fleet, pools);
    std::printf("quotas     %d pools on %d gateways each, writes alone %.2f s, %llu deliveries\n",
                pools, kGatewaysPerPool, quotas.write_s,
                static_cast<unsigned long long>(quotas.deliveries));
    aims.AtMost("quotas", quotas.all_s, 60, "s");
    std::printf("           made in %.1f s, in sync %.1f s later\n", quotas.create_s,
                quotas.settle_s);
    const double loaded = MeasureReconnect(fleet);
    aims.AtMost("reconnect with all pools", loaded, 30, "s");
    const double memory = fleet.controller().PeakMemory();
    aims.AtMost("memory of the controller", memory, 1024, "MiB");
    char json[512];
    std::snprintf(json, sizeof json,
                  "{\"agents\": %d, \"pools\": %d, \"change_s\": %.4f, \"reconnect_s\": %.3f, "
                  "\"reconnect_loaded_s\": %.3f, \"quotas_s\": %.3f, \"controller_mib\": %.1f}\n",
                  agents, pools, change, reconnect, loaded, quotas.all_s, memory);
    WriteJson(arguments, json);
  }
  std::filesystem::remove_all(pattern);
  return aims.ExitStatus();
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) { return rocegw::bench::Main(argc, argv); }
