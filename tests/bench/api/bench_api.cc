// SPDX-License-Identifier: Apache-2.0
// The controller (the program itself, SQLite on disk) through its API:
//   writes  a pool's quota, with a request_id, until it is acknowledged, which is after its
//           fdatasync: one client, 64 clients, each with a connection of its own; in turns with
//           fdatasync of 4 KiB in the same folder, written in place and appended
//   start   100,000 objects, killed with all of them only in the log: from exec to the first page
//           of a list, and to the first push that has arrived at an agent
// Ends with an error when an aim is missed. Files are made below TMPDIR, else /tmp: it should lie
// on the disk that is asked about.
#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/store/random_uuid.h"
#include "rocegw/admin/v1/pools.grpc.pb.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"
#include "tests/bench/aims.h"
#include "tests/bench/api/large_store.h"
#include "tests/bench/disk_sync.h"
#include "tests/bench/measurement.h"
#include "tests/support/fleet/agent_fleet.h"
#include "tests/support/fleet/controller_program.h"

namespace rocegw::bench {
namespace {

using testing::ControllerProgram;
using testing::PatientContext;

constexpr double kTurn = 1.5;  // seconds
constexpr size_t kClients = 64;

[[noreturn]] void Die(const std::string& what) { testing::GiveUp("bench_api: " + what); }

ControllerProgram::Options OptionsIn(const std::string& directory) {
  std::filesystem::create_directory(directory);
  return {.program =
              std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rocegw-controller",
          .directory = directory,
          .port = testing::FreeTcpPorts(1).front()};
}

types::v1::Pool PoolOf(size_t client, uint64_t qps) {
  types::v1::Pool pool;
  pool.set_name("tenants/bench/pools/p" + std::to_string(client));
  pool.mutable_spec()->mutable_gateways()->set_all(true);
  pool.mutable_spec()->mutable_quota()->mutable_peak()->set_qps(qps);
  return pool;
}

// One client: the next write begins when the last one is acknowledged. Runs on gRPC's threads, so
// that 64 of them do not take the processors from the controller that is measured.
class Client {
 public:
  Client(const ControllerProgram& controller, size_t number)
      : number_(number), stub_(admin::v1::Pools::NewStub(controller.Admin())) {
    admin::v1::CreatePoolRequest create;
    *create.mutable_pool() = PoolOf(number, 1);
    types::v1::Pool made;
    const grpc::Status status = stub_->CreatePool(PatientContext().get(), create, &made);
    if (!status.ok()) Die("pool: " + status.error_message());
  }
  // reads: it only reads its pool, which costs what a call costs without any write.
  void Begin(double until, bool reads) {
    until_ = until;
    reads_ = reads;
    times_.clear();
    busy_ = true;
    Next();
  }
  std::vector<double> Await() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return !busy_; });
    return std::move(times_);
  }

 private:
  void Next() {
    context_ = PatientContext();
    const auto done = [this](const grpc::Status& status) {
      if (!status.ok()) Die("call: " + status.error_message());
      const double now = Seconds();
      times_.push_back(now - began_);
      if (now < until_) return Next();
      const std::lock_guard lock(mutex_);
      busy_ = false;
      done_.notify_all();
    };
    began_ = Seconds();
    if (reads_) {
      read_.set_name(PoolOf(number_, 0).name());
      return stub_->async()->GetPool(context_.get(), &read_, &response_, done);
    }
    request_.set_request_id(store::RandomUuid());
    *request_.mutable_pool() = PoolOf(number_, ++qps_);
    stub_->async()->UpdatePool(context_.get(), &request_, &response_, done);
  }

  const size_t number_;
  const std::unique_ptr<admin::v1::Pools::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  admin::v1::UpdatePoolRequest request_;
  admin::v1::GetPoolRequest read_;
  bool reads_ = false;
  types::v1::Pool response_;
  uint64_t qps_ = 1;
  double began_ = 0;
  double until_ = 0;
  std::vector<double> times_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool busy_ = false;
};

Acknowledged Calls(std::vector<std::unique_ptr<Client>>& clients, size_t count, bool reads) {
  const double begin = Seconds();
  for (size_t i = 0; i < count; ++i) clients[i]->Begin(begin + kTurn, reads);
  std::vector<double> all;
  for (size_t i = 0; i < count; ++i) {
    for (const double time : clients[i]->Await()) all.push_back(time);
  }
  return Summarise(std::move(all), Seconds() - begin);
}

std::string MeasureWrites(const std::string& directory, int rounds, Aims& aims) {
  ControllerProgram controller(OptionsIn(directory + "/writes"));
  controller.Start();
  admin::v1::CreateTenantRequest tenant;
  tenant.mutable_tenant()->set_name("tenants/bench");
  types::v1::Tenant made;
  const grpc::Status status = admin::v1::Tenants::NewStub(controller.Admin())
                                  ->CreateTenant(PatientContext().get(), tenant, &made);
  if (!status.ok()) Die("tenant: " + status.error_message());
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kClients; ++i) clients.push_back(std::make_unique<Client>(controller, i));

  const char* const names[] = {"fdatasync in place", "fdatasync appended", "one client",
                               "64 clients", "one client, reads"};
  constexpr size_t kRows = std::size(names);
  std::vector<Acknowledged> results[kRows];
  for (int round = 0; round < rounds; ++round) {
    results[0].push_back(SyncRate(directory + "/raw", 4096, true, kTurn));
    results[1].push_back(SyncRate(directory + "/raw", 4096, false, kTurn));
    results[2].push_back(Calls(clients, 1, false));
    results[3].push_back(Calls(clients, kClients, false));
    results[4].push_back(Calls(clients, 1, true));
  }
  const auto median = [&](size_t row, double Acknowledged::*field) {
    std::vector<double> values;
    for (const Acknowledged& result : results[row]) values.push_back(result.*field);
    return Median(std::move(values));
  };
  // Within a round: the disk is not the same from one second to the next.
  const auto ratio = [&](size_t row, size_t to) {
    std::vector<double> values;
    for (size_t i = 0; i < results[row].size(); ++i)
      values.push_back(results[row][i].rate / results[to][i].rate);
    return Median(std::move(values));
  };
  std::printf("%-20s %8s %8s %8s %12s %12s\n", "medians of turns", "per s", "p50 ms", "p99 ms",
              "of in place", "of appended");
  std::string json;
  for (size_t row = 0; row < kRows; ++row) {
    const double rate = median(row, &Acknowledged::rate);
    std::printf("%-20s %8.0f %8.3f %8.3f %11.2fx %11.2fx\n", names[row], rate,
                median(row, &Acknowledged::p50), median(row, &Acknowledged::p99), ratio(row, 0),
                ratio(row, 1));
    json += "\"" + std::string(names[row]) + "\": " + std::to_string(rate) + ", ";
  }
  aims.AtLeast("64 clients", ratio(3, 2), 2, "times one client");
  aims.AtLeast("one client", ratio(2, 0), 0.4, "of fdatasync in place");
  return json + "\"one of in place\": " + std::to_string(ratio(2, 0)) +
         ", \"one of appended\": " + std::to_string(ratio(2, 1)) +
         ", \"64 of one\": " + std::to_string(ratio(3, 2));
}

struct Start {
  double list = 0;  // seconds from exec
  double push = 0;
  double all = 0;  // the whole list, page by page
};

Start StartOnce(ControllerProgram& controller, testing::AgentFleet& agents) {
  Start start;
  const double began = Seconds();
  controller.Start();
  agents.Start();
  std::thread push([&] {
    while (agents.gateway(0).revision == 0) ::usleep(1000);
    start.push = Seconds() - began;
  });
  const auto pools = admin::v1::Pools::NewStub(controller.Admin());
  admin::v1::ListPoolsRequest request;
  request.set_parent("tenants/-");
  request.set_page_size(1000);
  int listed = 0;
  do {
    admin::v1::ListPoolsResponse page;
    const grpc::Status status = pools->ListPools(PatientContext().get(), request, &page);
    if (!status.ok()) Die("list: " + status.error_message());
    if (listed == 0) start.list = Seconds() - began;
    listed += page.pools_size();
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  start.all = Seconds() - began;
  push.join();
  if (listed != kPools) Die("only " + std::to_string(listed) + " pools are listed");
  return start;
}

std::string MeasureStart(const std::string& directory, Aims& aims) {
  ControllerProgram controller(OptionsIn(directory + "/start"));
  controller.Start();
  testing::AgentFleet agents({.directory = directory, .agents = 1});
  agents.Join(controller.Admin());
  controller.Kill();
  const double log = MakeLargeStore(controller.state_dir() + "/fleet.db");
  const Start start = StartOnce(controller, agents);
  std::printf(
      "start with %d objects after SIGKILL, %.0f MiB of log: all pools listed %.2f s after exec, "
      "%.0f MiB\n",
      kTenants + kPools + kGateways, log, start.all, controller.PeakMemory());
  aims.AtMost("first list", start.list, 5, "s after exec");
  aims.AtMost("first push", start.push, 5, "s after exec");
  return "\"start_list_s\": " + std::to_string(start.list) +
         ", \"start_push_s\": " + std::to_string(start.push);
}

int Main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--fill") == 0) Die(FillAndDie(argv[2]));
  const Arguments arguments = ParseArguments(argc, argv, 5);
  signal(SIGPIPE, SIG_IGN);
  spdlog::set_level(spdlog::level::err);
  std::string directory = (std::filesystem::temp_directory_path() / "rocegw-api-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) Die("no temporary directory");
  std::printf("%s\n", Machine().c_str());
  Aims aims;
  std::string json = "{" + MeasureStart(directory, aims);
  json += ", " + MeasureWrites(directory, arguments.rounds, aims) + "}";
  WriteJson(arguments, json);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return aims.ExitStatus();
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) { return rocegw::bench::Main(argc, argv); }
