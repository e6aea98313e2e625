// SPDX-License-Identifier: Apache-2.0
// Agents' streams at a controller whose follower is behind the store: over TLS, as a node.
#include "controlplane/api/nodes/node_streams.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>

#include "controlplane/api/nodes/node_service.h"
#include "controlplane/store/local/memory_store.h"
#include "tests/support/fleet_fixture.h"
#include "tests/support/store/forwarding_store.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing::node_streams {
namespace {

using fleet::v1::SyncRequest;
using fleet::v1::SyncResponse;

// Store like a lagging etcd member: reads are current, watches deliver nothing while held back.
class LateStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  void RangeAsync(store::RangeRequest request, RangeDone done) override {
    ForwardingStore::RangeAsync(std::move(request), std::move(done));
    const std::lock_guard lock(gate_->mutex);
    ++reads_;
    read_.notify_all();
  }
  StatusOr<std::unique_ptr<store::Watch>> NewWatch(store::KeyRange range, store::Revision from,
                                                   std::function<void()> ready) override {
    auto watch = ForwardingStore::NewWatch(std::move(range), from, ready);
    if (!watch.ok()) return watch.status();
    const std::lock_guard lock(gate_->mutex);
    gate_->ready.push_back(std::move(ready));
    return std::unique_ptr<store::Watch>(new LateWatch(gate_, std::move(*watch)));
  }

  void Hold() {
    const std::lock_guard lock(gate_->mutex);
    gate_->held = true;
    reads_ = 0;
  }
  void Release() {
    std::vector<std::function<void()>> ready;
    {
      const std::lock_guard lock(gate_->mutex);
      gate_->held = false;
      ready = gate_->ready;
    }
    for (const auto& call : ready) call();
  }
  // Returns true if a read has occurred since Hold, or occurs soon.
  bool AwaitRead() {
    std::unique_lock lock(gate_->mutex);
    return read_.wait_for(lock, std::chrono::seconds(5), [this] { return reads_ != 0; });
  }

 private:
  struct Gate {
    std::mutex mutex;
    bool held = false;
    std::vector<std::function<void()>>
        ready;  // callbacks of all watches; calls of ended ones do nothing
  };
  class LateWatch final : public store::Watch {
   public:
    LateWatch(std::shared_ptr<Gate> gate, std::unique_ptr<store::Watch> watch)
        : gate_(std::move(gate)), watch_(std::move(watch)) {}
    StatusOr<std::optional<store::Changes>> TryNext() override {
      {
        const std::lock_guard lock(gate_->mutex);
        if (gate_->held) return std::optional<store::Changes>();
      }
      return watch_->TryNext();
    }

   private:
    const std::shared_ptr<Gate> gate_;
    const std::unique_ptr<store::Watch> watch_;
  };

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::condition_variable read_;
  int reads_ = 0;
};

class NodeStreamsTest : public ::testing::Test {
 protected:
  NodeStreamsTest() {
    // A test may hold the store from now on.
    Await(Put(GatewayWith("g")));
    auto key = std::move(*identity::NewKey());
    const std::string key_pem = *identity::KeyToPem(*key);
    const auto serial = [] { return identity::NewSerial(identity::Now()); };
    constexpr std::chrono::hours kDay(24);
    const auto node = *authority_->IssueNode(*key, "g", kDay, serial());
    const auto self = *authority_->IssueServer(*key, {}, kDay, serial());

    grpc::SslServerCredentialsOptions tls(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = authority_->bundle();
    tls.pem_key_cert_pairs.push_back({key_pem, self.pem});
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(identity::ServerName("example"));
    stub_ = fleet::v1::NodeService::NewStub(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port),
        grpc::SslCredentials({authority_->bundle(), key_pem, node.pem}), arguments));
  }
  ~NodeStreamsTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  // Waits until the controller's view has this revision.
  void Await(store::Revision revision) {
    std::promise<void> reached;
    follower_->WhenReached(revision, [&] { reached.set_value(); });
    reached.get_future().wait();
  }
  template <typename Object>
  store::Revision Put(const Object& object) {
    store::Transaction write;
    write.then.push_back(IntentOf(object));
    return store_.Txn(std::move(write)).value().revision;
  }
  // Opens a stream with the given running state.
  std::unique_ptr<grpc::ClientReaderWriter<SyncRequest, SyncResponse>> Open(
      grpc::ClientContext& context, store::Revision applied) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    auto stream = stub_->Sync(&context);
    SyncRequest request;
    request.mutable_hello()->set_gateway("gateways/g");
    request.mutable_hello()->set_store_uuid(store_.uuid());
    request.mutable_hello()->set_applied_revision(applied);
    EXPECT_TRUE(stream->Write(request));
    return stream;
  }
  uint32_t Connected() {
    std::promise<uint32_t> connected;
    hub_.WhenSent(
        0, [&](const sync::FleetProgress& progress) { connected.set_value(progress.connected); });
    return connected.get_future().get();
  }

  ScratchDirectory directory_;
  const std::unique_ptr<store::MemoryStore> memory_ = store::NewMemoryStore();
  LateStore store_{*memory_};
  std::unique_ptr<sync::FleetFollower> follower_ = std::move(*sync::FleetFollower::Start(store_));
  api::Writer writer_{store_, *follower_};
  const api::Backend backend_{store_, *follower_, writer_};
  std::unique_ptr<identity::CertificateAuthority> authority_ =
      std::move(*identity::CertificateAuthority::Open(directory_.File(""), "example"));
  api::Enrollment enrollment_{store_, *follower_, *authority_, {}};
  sync::StatusWriter statuses_{store_, std::chrono::milliseconds(1)};
  sync::NodeHub hub_{*follower_, statuses_, store_.uuid()};
  sync::TunnelHub tunnels_;
  std::unique_ptr<identity::Revocations> revocations_ =
      std::move(*identity::Revocations::Start(store_));
  const identity::FleetKeySchedule keys_{"secret", std::chrono::hours(24)};
  api::NodeService service_{enrollment_, {backend_, hub_, tunnels_, *revocations_}, keys_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<fleet::v1::NodeService::Stub> stub_;
};

// The node would take an older push for a store with a lost past, and keep its state until
// adoption.
TEST_F(NodeStreamsTest, NodeThatHasMoreThanTheController_IsSentNothingOlder) {
  store_.Hold();
  Put(TenantWith("a"));
  const store::Revision given = Put(PoolWith("a", "p", ""));
  grpc::ClientContext context;
  const auto stream = Open(context, given);
  EXPECT_TRUE(store_.AwaitRead()) << "it does not ask what is newest";
  store_.Release();
  SyncResponse response;
  ASSERT_TRUE(stream->Read(&response)) << stream->Finish().error_message();
  EXPECT_GE(response.push().revision(), given);
  EXPECT_EQ(response.push().objects_size(), 3) << response.push().ShortDebugString();
  context.TryCancel();
}

TEST_F(NodeStreamsTest, NodeThatGoesWhileTheControllerCatchesUp_IsNotConnected) {
  store_.Hold();
  const store::Revision given = Put(TenantWith("a"));
  {
    grpc::ClientContext context;
    const auto stream = Open(context, given);
    EXPECT_TRUE(store_.AwaitRead());
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // The server has processed it, too.
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
  store_.Release();
  Await(given);
  EXPECT_EQ(Connected(), 0u);
}

}  // namespace
}  // namespace rocegw::testing::node_streams
