// SPDX-License-Identifier: Apache-2.0
// Two controllers over one etcd: one fleet, one authority, one housekeeper.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"
#include "tests/e2e/controller/controller_host.h"
#include "tests/e2e/store/etcd_cluster.h"

namespace rocegw::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

std::string StoreIn(const EtcdCluster& cluster) {
  const store::EtcdOptions options = cluster.Options("/fleet/");
  return "store: {backend: etcd, etcd: {endpoints: ['" + options.endpoints.front() +
         "'], root: /fleet/}}\n";
}

size_t CountTenants(const ControllerHost& host) {
  admin::v1::ListTenantsResponse response;
  const grpc::Status status = admin::v1::Tenants::NewStub(host.AdminChannel())
                                  ->ListTenants(ContextFor().get(), {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return static_cast<size_t>(response.tenants_size());
}

void ShareAuthority(const ControllerHost& from, const ControllerHost& to) {
  fs::create_directories(to.State(""));
  fs::permissions(to.State(""), fs::perms::owner_all);
  for (const char* name : {"ca.key", "ca.crt"}) {
    fs::copy_file(from.State(name), to.State(name), fs::copy_options::overwrite_existing);
  }
}

// Of one store and one authority.
struct TwoControllers {
  TwoControllers() {
    first.Start();
    ShareAuthority(first, second);
    second.Start();
  }
  const EtcdCluster cluster{1};
  ControllerHost first{StoreIn(cluster)};
  ControllerHost second{StoreIn(cluster)};
};

// What rocegwctl prints there, with its messages and its exit status.
std::string Ctl(const ControllerHost& host, const std::string& arguments) {
  return Shell("HOME=/nonexistent ROCEGW_CONTROLLER=unix:" + host.State("admin.sock") +
               " " ROCEGWCTL " " + arguments + " 2>&1; echo \"exit $?\"");
}

// An agent's two streams; its gateway has two queue pairs and captures as it is granted. Of
// counters and of what it was told to run it says nothing.
class StreamingNode {
 public:
  explicit StreamingNode(const std::shared_ptr<grpc::Channel>& channel,
                         const std::string& gateway = "gateways/a")
      : stub_(fleet::v1::NodeService::NewStub(channel)),
        sync_(stub_->Sync(sync_context_.get())),
        tunnel_(stub_->Tunnel(tunnel_context_.get())) {
    fleet::v1::SyncRequest hello;
    hello.mutable_hello()->set_gateway(gateway);
    EXPECT_TRUE(sync_->Write(hello));
    fleet::v1::TunnelAnswer first;
    first.set_gateway(gateway);
    EXPECT_TRUE(tunnel_->Write(first));
    thread_ = std::thread([this] { Answer(); });
  }
  ~StreamingNode() {
    sync_context_->TryCancel();
    tunnel_context_->TryCancel();
    thread_.join();
    (void)tunnel_->Finish();
    (void)sync_->Finish();
  }
  // It follows another store, and says so of the first push.
  void KeepToItsStore() {
    fleet::v1::SyncResponse push;
    ASSERT_TRUE(sync_->Read(&push));
    fleet::v1::SyncRequest report;
    report.mutable_report()->set_nonce(push.push().nonce());
    report.mutable_report()->set_status(types::v1::UNADOPTED);
    report.mutable_report()->set_store_uuid("00000000-0000-4000-8000-000000000001");
    EXPECT_TRUE(sync_->Write(report));
  }
  bool AwaitAdoption() {
    fleet::v1::SyncResponse push;
    while (sync_->Read(&push)) {
      if (push.push().adopt()) return true;
    }
    return false;
  }
  uint64_t AwaitCancelled() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return cancelled_; });
    return sent_;
  }

 private:
  void Answer() {
    fleet::v1::TunnelQuestion question;
    uint64_t capture = 0;
    while (tunnel_->Read(&question)) {
      fleet::v1::TunnelAnswer answer;
      answer.set_id(question.id());
      if (question.has_list_qps()) {
        answer.set_more(true);
        answer.mutable_qps()->add_qps()->set_qpn(4711);
        tunnel_->Write(answer);
        answer.set_more(false);
        answer.mutable_qps()->mutable_qps(0)->set_qpn(4712);
        tunnel_->Write(answer);
      } else if (question.has_capture()) {
        capture = question.id();
      } else if (question.has_grant() && question.id() == capture) {
        for (uint32_t i = 0; i < question.grant(); ++i) {
          answer.set_more(true);
          answer.mutable_chunk()->set_data(std::to_string(++sent_) + ";");
          tunnel_->Write(answer);
        }
      } else if (question.cancel() && question.id() == capture) {
        const std::lock_guard lock(mutex_);
        cancelled_ = true;
        changed_.notify_all();
      }
    }
  }

  const std::unique_ptr<grpc::ClientContext> sync_context_ = ContextFor(seconds(100));
  const std::unique_ptr<grpc::ClientContext> tunnel_context_ = ContextFor(seconds(100));
  const std::unique_ptr<fleet::v1::NodeService::Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<fleet::v1::SyncRequest, fleet::v1::SyncResponse>>
      sync_;
  const std::unique_ptr<
      grpc::ClientReaderWriter<fleet::v1::TunnelAnswer, fleet::v1::TunnelQuestion>>
      tunnel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false;
  uint64_t sent_ = 0;
  std::thread thread_;
};

TEST(ControllersOnEtcd, OneAsksTheOtherForItsGateways_AndNoticesWhenItIsGone) {
  TwoControllers controllers;
  ControllerHost& first = controllers.first;
  ControllerHost& second = controllers.second;
  StreamingNode node(first.TlsChannel(first.JoinNode("a")));
  const auto gateways = admin::v1::Gateways::NewStub(second.AdminChannel());
  const auto watch_context = ContextFor(seconds(100));
  const auto watch = gateways->WatchGateways(watch_context.get(), {});
  const auto await_connected = [&](bool connected) {
    admin::v1::WatchGatewaysResponse seen;
    while (watch->Read(&seen)) {
      for (const auto& gateway : seen.changed()) {
        if (gateway.status().connected() == connected) return true;
      }
    }
    return false;
  };
  ASSERT_TRUE(await_connected(true));

  admin::v1::ListGatewayObjectsRequest list;
  list.set_parent("gateways/a");
  gateway::v1::ListQpsResponse qps;
  const grpc::Status listed = gateways->ListGatewayQps(ContextFor().get(), list, &qps);
  ASSERT_TRUE(listed.ok()) << listed.error_message();
  ASSERT_EQ(qps.qps_size(), 2);
  EXPECT_EQ(qps.qps(1).qpn(), 4712u);
  const std::string table = Ctl(second, "get qps -g a");
  EXPECT_NE(table.find("exit 0"), std::string::npos) << table;
  EXPECT_NE(table.find("0x001268"), std::string::npos) << table;

  // The caller's deadline is kept on the way.
  admin::v1::GetGatewayCountersRequest counters;
  counters.set_name("gateways/a");
  gateway::v1::GetCountersResponse counted;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(
      gateways->GetGatewayCounters(ContextFor(seconds(1)).get(), counters, &counted).error_code(),
      grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));

  // Whoever may not ask the one that is called does not get to the other.
  const auto nobody = admin::v1::Gateways::NewStub(second.TlsChannel(second.MakeUser("nobody")));
  EXPECT_EQ(nobody->ListGatewayQps(ContextFor().get(), list, &qps).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);

  // A capture goes at the pace of its reader over both, and ends with him.
  admin::v1::CaptureGatewayRequest capture;
  capture.set_name("gateways/a");
  const auto capture_context = ContextFor(seconds(60));
  const auto pieces = gateways->CaptureGateway(capture_context.get(), capture);
  gateway::v1::CaptureChunk chunk;
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(pieces->Read(&chunk)) << pieces->Finish().error_message();
    ASSERT_EQ(chunk.data(), std::to_string(i) + ";");
  }
  capture_context->TryCancel();
  EXPECT_GE(node.AwaitCancelled(), 100u);
  (void)pieces->Finish();

  first.Kill();
  ASSERT_TRUE(await_connected(false)) << "its streams ended with it, and nobody else has them";
  EXPECT_EQ(gateways->ListGatewayQps(ContextFor().get(), list, &qps).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  watch_context->TryCancel();
}

TEST(ControllersOnEtcd, EachKnowsHowTheGatewaysOfAllAre_AndSaysWhenItDoesNot) {
  TwoControllers controllers;
  ControllerHost& first = controllers.first;
  ControllerHost& second = controllers.second;
  const StreamingNode a(first.TlsChannel(first.JoinNode("a")));
  StreamingNode b(second.TlsChannel(first.JoinNode("b")), "gateways/b");
  b.KeepToItsStore();
  StreamingNode c(first.TlsChannel(first.JoinNode("c")), "gateways/c");
  c.KeepToItsStore();
  const auto progress_of = [](ControllerHost& host) {
    admin::v1::GetFleetProgressResponse progress;
    const grpc::Status status = admin::v1::Gateways::NewStub(host.AdminChannel())
                                    ->GetFleetProgress(ContextFor().get(), {}, &progress);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return progress;
  };
  const auto await = [&](ControllerHost& host, const auto& holds) {
    const auto end = std::chrono::steady_clock::now() + seconds(30);
    auto progress = progress_of(host);
    while (!holds(progress) && std::chrono::steady_clock::now() < end) {
      progress = progress_of(host);
    }
    EXPECT_TRUE(holds(progress)) << progress.ShortDebugString();
  };
  for (ControllerHost* host : {&first, &second}) {
    await(*host, [](const auto& progress) {
      return progress.gateways() == 3 && progress.connected() == 3 && progress.unadopted() == 2 &&
             progress.in_sync() == 0 && progress.silent_controllers() == 0;
    });
  }
  // Nobody has said that it runs anything, so it is not well, whoever is asked.
  for (ControllerHost* host : {&first, &second}) {
    const std::string status = Ctl(*host, "status --wait --timeout 1s");
    EXPECT_NE(status.find("3 gateways, 3 connected, 0 in sync"), std::string::npos) << status;
    EXPECT_EQ(status.find("exit 0"), std::string::npos) << status;
  }

  // Those of both are adopted at once.
  admin::v1::AdoptFleetRequest adopt;
  adopt.set_name("gateways/-");
  admin::v1::AdoptFleetResponse adopted;
  const auto gateways = admin::v1::Gateways::NewStub(first.AdminChannel());
  const grpc::Status status = gateways->AdoptFleet(ContextFor().get(), adopt, &adopted);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(adopted.gateways(), 2u);
  EXPECT_TRUE(b.AwaitAdoption());
  EXPECT_TRUE(c.AwaitAdoption());

  // One that hangs is said to be missing, and its gateways count for nobody.
  second.process().Signal(SIGSTOP);
  const auto alone = progress_of(first);
  EXPECT_EQ(alone.silent_controllers(), 1u);
  EXPECT_EQ(alone.connected(), 2u);
  const std::string waited = Ctl(first, "status");
  EXPECT_NE(waited.find("1 controller that does not answer"), std::string::npos) << waited;
  EXPECT_EQ(gateways->AdoptFleet(ContextFor().get(), adopt, &adopted).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  second.process().Signal(SIGCONT);
}

TEST(ControllersOnEtcd, AreOneFleet) {
  const EtcdCluster cluster(1);
  ControllerHost first(StoreIn(cluster));
  ControllerHost second(StoreIn(cluster));
  first.Start();
  {
    // An authority of its own would make two fleets of one store.
    DaemonProcess stranger(CONTROLLER_PROGRAM, second.File(""), {"--config", second.config_file()});
    EXPECT_EQ(stranger.WaitExit(), 3);
    EXPECT_NE(stranger.Log().find("copy ca.key and ca.crt"), std::string::npos) << stranger.Log();
  }
  ShareAuthority(first, second);
  second.Start();
  first.CreateTenant("t");
  EXPECT_EQ(CountTenants(second), 1u);

  // A node of the one is a node of the other, and is revoked there too, within five seconds.
  const auto channel = second.TlsChannel(first.JoinNode("a"));
  const auto stub = fleet::v1::NodeService::NewStub(channel);
  const auto context = ContextFor(seconds(60));
  const auto stream = stub->Sync(context.get());
  fleet::v1::SyncRequest hello;
  fleet::v1::SyncResponse push;
  hello.mutable_hello()->set_gateway("gateways/a");
  ASSERT_TRUE(stream->Write(hello) && stream->Read(&push)) << stream->Finish().error_message();
  admin::v1::RevokeGatewayRequest request;
  request.set_name("gateways/a");
  admin::v1::RevokeGatewayResponse response;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(admin::v1::Gateways::NewStub(first.AdminChannel())
                  ->RevokeGateway(ContextFor().get(), request, &response)
                  .ok());
  while (stream->Read(&push)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));

  first.Kill();
  second.CreateTenant("u");
  EXPECT_EQ(CountTenants(second), 2u);
  EXPECT_EQ(second.Stop(), 0);
}

bool Serves(const ControllerHost& host) {
  HealthAnswer answer;
  EXPECT_TRUE(CheckHealth(host.AdminChannel(), &answer).ok());
  return answer.serving;
}

bool Comes(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

TEST(ControllersOnEtcd, EtcdGone_ControllerIsNotReadyUntilItIsBack) {
  EtcdCluster cluster(1);
  ControllerHost host(StoreIn(cluster));
  host.Start();
  EXPECT_TRUE(Serves(host));
  cluster.Signal(0, SIGKILL);
  EXPECT_TRUE(Comes([&] { return !Serves(host); }));
  EXPECT_TRUE(host.process().Logs("the store cannot be followed: no member of etcd answers"))
      << host.process().Log();
  cluster.Restart(0);
  EXPECT_TRUE(Comes([&] { return Serves(host); }));
  EXPECT_TRUE(host.process().Logs("the store is followed again"));
  host.CreateTenant("t");
  EXPECT_EQ(host.Stop(), 0);
}

TEST(ControllersOnEtcd, NoEtcd_IsSaidWithWhatWasTried) {
  ControllerHost host("store: {backend: etcd, etcd: {endpoints: ['127.0.0.1:1']}}\n");
  DaemonProcess controller(CONTROLLER_PROGRAM, host.File(""), {"--config", host.config_file()});
  EXPECT_EQ(controller.WaitExit(), 3);
  EXPECT_NE(controller.Log().find("127.0.0.1:1"), std::string::npos) << controller.Log();
}

}  // namespace
}  // namespace rocegw::testing
