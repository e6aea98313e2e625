// SPDX-License-Identifier: Apache-2.0
// A controller (the program itself, a process of its own, SQLite on disk) and 2,000 agents (the
// production agent with its own certificate, mTLS connection and streams) in this process, each
// over a gateway that takes everything at once. Measured:
//   change     one policy: from the answer to the write until the last agent's report is in
//   quotas     10,000 pools, each on 20 gateways: a change of every quota, until all are applied
//   reconnect  SIGKILL of the controller: from its new start until all agents are in sync again
//   memory     of the controller
// Smaller: --agents N --pools N.
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/supervise/agent.h"
#include "gateway/base/unique_fd.h"
#include "rocegw/admin/v1/cc_policies.grpc.pb.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "rocegw/admin/v1/pools.grpc.pb.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"
#include "tests/bench/fleet/fake_gateway.h"
#include "tests/bench/measurement.h"

namespace rocegw::bench {
namespace {

constexpr int kGatewaysPerPool = 20;
constexpr int kPoolsPerTenant = 1;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "bench_fleet: %s\n", why.c_str());
  std::exit(1);
}

void Check(const grpc::Status& status, const std::string& what) {
  if (!status.ok()) Die(what + ": " + status.error_message());
}

// One that nobody listened on a moment ago.
int FreePort() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    Die("no free port");
  }
  return ntohs(address.sin_port);
}

// The program beside this one.
class Controller {
 public:
  explicit Controller(std::string directory) : directory_(std::move(directory)) {
    std::ofstream config(directory_ + "/controller.yaml");
    config << "state_dir: " << directory_ << "/state\n"
           << "address: 127.0.0.1:" << port_ << "\n"
           << "names: [\"127.0.0.1\"]\n"
           << "controllers: [\"127.0.0.1:" << port_ << "\"]\n"
           << "metrics: {address: \"\"}\n";
  }
  ~Controller() {
    if (pid_ > 0) Kill();
  }
  void Start() {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rocegw-controller";
    const std::string config = directory_ + "/controller.yaml";
    const std::string log = directory_ + "/controller.log";
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)!freopen(log.c_str(), "a", stderr);
      (void)!freopen(log.c_str(), "a", stdout);
      execl(program.c_str(), program.c_str(), "--config", config.c_str(), nullptr);
      _exit(127);
    }
  }
  void Kill() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::shared_ptr<grpc::Channel> Admin() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    return grpc::CreateCustomChannel("unix:" + directory_ + "/state/admin.sock",
                                     grpc::experimental::LocalCredentials(UDS), arguments);
  }
  // MiB that it has had in memory at most.
  double PeakMemory() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
    }
    return 0;
  }

 private:
  const int port_ = FreePort();
  const std::string directory_;
  pid_t pid_ = -1;
};

std::unique_ptr<grpc::ClientContext> Context() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(50));
  context->set_wait_for_ready(true);
  return context;
}

struct Node {
  std::unique_ptr<agent::NodeIdentity> identity;
  std::unique_ptr<FakeGateway> gateway;
  std::unique_ptr<agent::Agent> agent;
};

class Fleet {
 public:
  Fleet(std::string directory, int agents)
      : directory_(std::move(directory)), controller_(directory_), nodes_(agents) {
    controller_.Start();
    channel_ = controller_.Admin();
    gateways_ = admin::v1::Gateways::NewStub(channel_);
    if (Status status = loop_.Open(); !status.ok()) Die(status.text());
  }
  ~Fleet() {
    if (!thread_.joinable()) return;
    (void)loop_.Post([this] {
      for (Node& node : nodes_) node.agent.reset();
      loop_.Stop();
    });
    thread_.join();
  }

  // Every agent has an identity of its own, as a host has.
  void Join() {
    std::vector<std::thread> workers;
    std::atomic<size_t> next{0};
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        for (size_t at = next++; at < nodes_.size(); at = next++) JoinOne(at);
      });
    }
    for (std::thread& worker : workers) worker.join();
  }
  void StartAgents() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].gateway = std::make_unique<FakeGateway>(
          loop_, "10." + std::to_string(i / 65536) + "." + std::to_string(i / 256 % 256) + "." +
                     std::to_string(i % 256));
    }
    (void)loop_.Post([this] {
      for (Node& node : nodes_) {
        // Probing 2,000 gateways is not the agents' work of a real host.
        node.agent = std::make_unique<agent::Agent>(
            loop_, *node.identity, *node.gateway,
            agent::AgentOptions{
                .version = "bench", .state_file = {}, .probe_every = rocegw::Seconds(20)});
      }
    });
    thread_ = std::thread([this] { loop_.Run(); });
  }

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
      if (progress.in_sync() == nodes_.size()) return Seconds() - began;
      if (Seconds() - began > give_up_s) {
        Die("after " + std::to_string(give_up_s) + " s only " + std::to_string(progress.in_sync()) +
            " of " + std::to_string(progress.connected()) + " connected agents are in sync");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  Controller& controller() { return controller_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  std::vector<Node>& nodes() { return nodes_; }

 private:
  void JoinOne(size_t at) {
    const std::string name = "gateways/g" + std::to_string(at);
    admin::v1::CreateJoinTokenRequest request;
    request.set_name(name);
    admin::v1::CreateJoinTokenResponse response;
    Check(gateways_->CreateJoinToken(Context().get(), request, &response), "join token");
    const auto file = identity::ReadJoinFile(response.token_file());
    if (!file.ok()) Die(file.status().text());
    const std::string directory = directory_ + "/" + std::to_string(at);
    std::filesystem::create_directory(directory);
    auto joined = agent::NodeIdentity::Join(directory, file.value(), name);
    if (!joined.ok()) Die(joined.status().text());
    nodes_[at].identity = std::make_unique<agent::NodeIdentity>(std::move(*joined));
  }

  const std::string directory_;
  Controller controller_;
  std::vector<Node> nodes_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<admin::v1::Gateways::Stub> gateways_;
  session::ControlLoop loop_;
  std::thread thread_;
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
  const int agents = static_cast<int>(fleet.nodes().size());
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
  for (Node& node : fleet.nodes()) {
    node.gateway->pools_with_it = 0;
    node.gateway->wanted_qps = 2;
  }
  const auto delivered = [&] {
    uint64_t sum = 0;
    for (const Node& node : fleet.nodes()) sum += node.gateway->pools_with_it;
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
  spdlog::set_level(spdlog::level::warn);
  std::string pattern = (std::filesystem::temp_directory_path() / "rocegw-fleet-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) Die("no temporary directory");
  std::printf("%s\n", Machine().c_str());
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
    std::printf("change     one policy on %d agents        %7.3f s (aim 1)\n", agents, change);
    const double reconnect = MeasureReconnect(fleet);
    std::printf("reconnect  after SIGKILL                    %7.2f s (aim 30)\n", reconnect);
    const QuotaResult quotas = MeasureQuotas(fleet, pools);
    std::printf(
        "quotas     %d pools on %d gateways each   %7.2f s (aim 60), writes alone %.2f s, "
        "%llu deliveries\n",
        pools, kGatewaysPerPool, quotas.all_s, quotas.write_s,
        static_cast<unsigned long long>(quotas.deliveries));
    std::printf("           made in %.1f s, in sync %.1f s later\n", quotas.create_s,
                quotas.settle_s);
    const double loaded = MeasureReconnect(fleet);
    std::printf("reconnect  with all pools                   %7.2f s (aim 30)\n", loaded);
    const double memory = fleet.controller().PeakMemory();
    std::printf("memory     of the controller                %7.0f MiB (aim 1024)\n", memory);
    char json[512];
    std::snprintf(json, sizeof json,
                  "{\"agents\": %d, \"pools\": %d, \"change_s\": %.4f, \"reconnect_s\": %.3f, "
                  "\"reconnect_loaded_s\": %.3f, \"quotas_s\": %.3f, \"controller_mib\": %.1f}\n",
                  agents, pools, change, reconnect, loaded, quotas.all_s, memory);
    WriteJson(arguments, json);
  }
  std::filesystem::remove_all(pattern);
  return 0;
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) { return rocegw::bench::Main(argc, argv); }
