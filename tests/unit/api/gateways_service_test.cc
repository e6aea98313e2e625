// SPDX-License-Identifier: Apache-2.0
// Gateways and operations over gRPC on a unix socket, with simulated agents.
#include "controlplane/api/services/gateways_service.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <ctime>
#include <future>
#include <optional>
#include <thread>
#include <variant>

#include "gateway/process/build_info.h"
#include "tests/unit/api/gateways_world.h"

namespace rocegw::testing::gateways {
namespace {

class Agent : public sync::NodeStream, public sync::TunnelStream {
 public:
  explicit Agent(sync::TunnelHub& tunnels) : tunnels_(tunnels) {}
  void Send(const fleet::v1::SyncResponse& message) override {
    const std::lock_guard lock(mutex_);
    last_ = message.push();
    changed_.notify_all();
  }
  // Answers at once, on a thread of its own like a stream.
  void Send(const fleet::v1::TunnelQuestion& question) override {
    if (silent_) return;
    if (question.has_capture() || question.has_grant() || question.has_cancel()) {
      const std::lock_guard lock(mutex_);
      if (question.has_capture()) capture_ = question;
      if (question.has_grant()) granted_ += question.grant();
      if (question.has_cancel()) cancelled_ = question.id();
      return changed_.notify_all();
    }
    answers_.emplace_back([this, question] {
      fleet::v1::TunnelAnswer answer;
      answer.set_id(question.id());
      if (question.has_get_status()) {
        answer.mutable_status()->set_version("7");
      } else if (question.has_explain()) {
        answer.mutable_explanation()->add_findings()->set_object(question.explain().pool());
      } else if (question.has_diagnose()) {
        answer.mutable_diagnosis()->add_diagnoses()->set_check("udp_port");
      } else if (question.has_list_events()) {
        answer.mutable_events()->add_events()->set_reason("QUOTA_EXCEEDED");
      } else if (question.has_list_pools()) {
        answer.mutable_pools()->add_pools()->set_pool("tenants/a/pools/p");
      } else if (question.has_list_connections()) {
        answer.mutable_connections()->add_connections()->set_local_qpn(19);
      } else if (question.has_list_channels()) {
        answer.mutable_channels()->add_channels()->set_number(23);
      } else if (question.has_list_srqs()) {
        answer.mutable_srqs()->add_srqs()->set_held(29);
      } else if (question.has_list_qps()) {
        answer.set_more(true);
        answer.mutable_qps()->add_qps()->set_qpn(17);
        tunnels_.OnAnswer("gateways/g", tunnel_, answer);
        answer.clear_more();
        answer.mutable_qps()->mutable_qps(0)->set_qpn(18);
      } else {
        answer.set_code(grpc::StatusCode::UNIMPLEMENTED);
        answer.set_message("never heard of it");
      }
      tunnels_.OnAnswer("gateways/g", tunnel_, answer);
    });
  }
  void Close(sync::StreamEnd) override {}
  void Join() {
    for (std::thread& answer : answers_) answer.join();
    answers_.clear();
  }
  types::v1::Push AwaitPush(store::Revision at_least) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return last_.revision() >= at_least; });
    return last_;
  }

  gateway::v1::CaptureRequest AwaitCapture() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return capture_.has_value(); });
    return capture_->capture();
  }
  // Sends at most the granted number of parts, like a gateway.
  void SendPieces(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return granted_ > 0; });
        --granted_;
      }
      fleet::v1::TunnelAnswer answer;
      answer.set_id(capture_->id());
      answer.set_more(i + 1 < count);
      answer.mutable_chunk()->set_data(std::to_string(i) + ";");
      if (i + 1 == count) answer.mutable_chunk()->mutable_summary()->set_packets(count);
      tunnels_.OnAnswer("gateways/g", tunnel_, answer);
    }
  }
  void AwaitCancel() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return cancelled_ == capture_->id(); });
  }
  uint32_t granted() {
    const std::lock_guard lock(mutex_);
    return granted_;
  }

  sync::TunnelHub::StreamId tunnel_ = 0;
  bool silent_ = false;

 private:
  sync::TunnelHub& tunnels_;
  std::mutex mutex_;
  std::condition_variable changed_;
  types::v1::Push last_;
  std::vector<std::thread> answers_;
  std::optional<fleet::v1::TunnelQuestion> capture_;
  uint32_t granted_ = 0;
  uint64_t cancelled_ = 0;
};

class GatewaysServiceTest : public GatewaysWorld {
 protected:
  ~GatewaysServiceTest() override {
    agent_->Join();
    Stop();
  }

  // Connects an agent whose gateway runs everything.
  void Connect() {
    fleet::v1::Hello hello;
    hello.set_gateway("gateways/g");
    stream_ = hub_.Attach(hello, agent_, 0);
    agent_->tunnel_ = tunnels_.Attach("gateways/g", agent_);
    Apply(1);
  }
  // Connects an agent whose gateway follows another store.
  void ConnectUnadopted() {
    fleet::v1::Hello hello;
    hello.set_gateway("gateways/g");
    hello.set_store_uuid("another");
    hello.set_applied_revision(7);
    agent_ = std::make_shared<Agent>(tunnels_);
    stream_ = hub_.Attach(hello, agent_, 0);
    types::v1::PushReport report;
    report.set_nonce(agent_->AwaitPush(1).nonce());
    report.set_status(types::v1::UNADOPTED);
    report.set_store_uuid("another");
    hub_.OnReport("gateways/g", stream_, report);
  }
  // Returns the number of adopted gateways, or the error.
  std::variant<uint32_t, grpc::StatusCode> Adopt(const std::string& request_id,
                                                 const std::string& name = "gateways/-") {
    admin::v1::AdoptFleetRequest request;
    request.set_name(name);
    request.set_request_id(request_id);
    admin::v1::AdoptFleetResponse response;
    const grpc::Status status = gateways_->AdoptFleet(Context().get(), request, &response);
    if (!status.ok()) return status.error_code();
    return response.gateways();
  }
  void Apply(store::Revision at_least) {
    const types::v1::Push push = agent_->AwaitPush(at_least);
    types::v1::PushReport report;
    report.set_nonce(push.nonce());
    report.set_status(types::v1::APPLIED);
    report.set_store_uuid(push.store_uuid());
    report.set_applied_revision(push.revision());
    hub_.OnReport("gateways/g", stream_, report);
  }
  void Draining(bool empty, uint64_t qps) {
    fleet::v1::Heartbeat heartbeat;
    heartbeat.set_gateway_connected(true);
    heartbeat.mutable_drain()->mutable_start_time()->set_seconds(1);
    heartbeat.mutable_drain()->set_empty(empty);
    heartbeat.mutable_drain()->set_qps(qps);
    hub_.OnHeartbeat("gateways/g", stream_, heartbeat);
  }
  types::v1::Operation Drain(const std::string& request_id = {}) {
    admin::v1::DrainGatewayRequest request;
    request.set_name("gateways/g");
    request.set_request_id(request_id);
    types::v1::Operation operation;
    const grpc::Status status = gateways_->DrainGateway(Context().get(), request, &operation);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return operation;
  }
  types::v1::Operation Wait(const std::string& name, std::chrono::milliseconds deadline) {
    admin::v1::WaitOperationRequest request;
    request.set_name(name);
    types::v1::Operation operation;
    const grpc::Status status =
        operations_->WaitOperation(Context(deadline).get(), request, &operation);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return operation;
  }

  std::shared_ptr<Agent> agent_ = std::make_shared<Agent>(tunnels_);
  sync::NodeHub::StreamId stream_ = 0;
};

// The administrator makes all calls here.
std::string KeyOfRequest(const std::string& request_id) {
  api::Call call;
  call.principal = "local:admin";
  call.request_id = request_id;
  return api::RequestKey(call);
}

TEST_F(GatewaysServiceTest, Drain_IsDoneWhenTheGatewayIsEmpty) {
  Connect();
  const types::v1::Operation begun = Drain();
  EXPECT_EQ(begun.spec().target(), "gateways/g");
  EXPECT_EQ(begun.spec().principal(), "local:admin");
  types::v1::Operation seen = Wait(begun.name(), std::chrono::milliseconds(300));
  EXPECT_FALSE(seen.status().done()) << "the deadline was near";
  const types::v1::Push push =
      agent_->AwaitPush(model::RevisionOfEtag(begun.meta().etag()).value());
  ASSERT_EQ(push.objects_size(), 1);
  EXPECT_EQ(push.objects(0).gateway().admin_state(), types::v1::DRAINING);
  Apply(push.revision());
  Draining(false, 3);
  auto waiting =
      std::async(std::launch::async, [&] { return Wait(begun.name(), std::chrono::seconds(20)); });
  Draining(true, 0);
  seen = waiting.get();
  EXPECT_TRUE(seen.status().done());
  EXPECT_EQ(seen.status().error_reason(), "");
  statuses_.Flush();
  admin::v1::GetOperationRequest get;
  get.set_name(begun.name());
  types::v1::Operation stored;
  ASSERT_TRUE(operations_->GetOperation(Context().get(), get, &stored).ok());
  EXPECT_TRUE(stored.status().done());
  EXPECT_TRUE(stored.status().has_done_time());
}

TEST_F(GatewaysServiceTest, DrainTwiceWithOneRequestId_IsOneOperation) {
  constexpr char kUuid[] = "123e4567-e89b-12d3-a456-426614174000";
  EXPECT_EQ(Drain(kUuid).name(), Drain(kUuid).name());
  EXPECT_NE(Drain().name(), Drain().name());
}

// gRPC may report an alarm's cancellation at any time, also after server and follower were
// destroyed.
TEST_F(GatewaysServiceTest, WaitThatHasEnded_NeedsNothingAnyMore) {
  const types::v1::Operation begun = Drain();
  admin::v1::UndrainGatewayRequest undrain;
  undrain.set_name("gateways/g");
  types::v1::Gateway gateway;
  ASSERT_TRUE(gateways_->UndrainGateway(Context().get(), undrain, &gateway).ok());
  for (int i = 0; i < 100; ++i) {
    const std::string socket = "unix:" + directory_.File("w" + std::to_string(i) + ".sock");
    const auto follower = std::move(*sync::FleetFollower::Start(*store_));
    api::Writer writer(*store_, *follower);
    const api::Backend backend{*store_, *follower, writer};
    api::OperationsService service(backend);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(socket, grpc::experimental::LocalServerCredentials(UDS));
    builder.RegisterService(&service);
    const auto server = builder.BuildAndStart();
    const auto stub =
        Operations::NewStub(grpc::CreateChannel(socket, grpc::experimental::LocalCredentials(UDS)));
    admin::v1::WaitOperationRequest request;
    request.set_name(begun.name());
    types::v1::Operation operation;
    ASSERT_TRUE(stub->WaitOperation(Context().get(), request, &operation).ok());
    EXPECT_TRUE(operation.status().done());
    server->Shutdown(std::chrono::system_clock::now());
  }
}

TEST_F(GatewaysServiceTest, Undrain_EndsTheOperation) {
  const types::v1::Operation begun = Drain();
  admin::v1::UndrainGatewayRequest request;
  request.set_name("gateways/g");
  types::v1::Gateway gateway;
  ASSERT_TRUE(gateways_->UndrainGateway(Context().get(), request, &gateway).ok());
  EXPECT_EQ(gateway.spec().admin_state(), types::v1::ACTIVE);
  EXPECT_EQ(gateway.meta().generation(), 3);
  const types::v1::Operation seen = Wait(begun.name(), std::chrono::seconds(20));
  EXPECT_TRUE(seen.status().done());
  EXPECT_EQ(seen.status().error_reason(), "CANCELLED");
}

TEST_F(GatewaysServiceTest, Cancel_TakesTheGatewayBackIntoService) {
  const types::v1::Operation begun = Drain();
  admin::v1::CancelOperationRequest request;
  request.set_name(begun.name());
  types::v1::Operation answer;
  ASSERT_TRUE(operations_->CancelOperation(Context().get(), request, &answer).ok());
  EXPECT_EQ(Wait(begun.name(), std::chrono::seconds(20)).status().error_reason(), "CANCELLED");
  EXPECT_EQ(operations_->CancelOperation(Context().get(), request, &answer).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(GatewaysServiceTest, QuestionsGoThroughTheTunnel) {
  admin::v1::GetGatewayStatusRequest get;
  get.set_name("gateways/g");
  types::v1::GatewayStatus status;
  EXPECT_EQ(gateways_->GetGatewayStatus(Context().get(), get, &status).error_code(),
            grpc::StatusCode::UNAVAILABLE)
      << "no agent is there";
  Connect();
  ASSERT_TRUE(gateways_->GetGatewayStatus(Context().get(), get, &status).ok());
  EXPECT_EQ(status.version(), "7");
  admin::v1::ListGatewayObjectsRequest list;
  list.set_parent("gateways/g");
  gateway::v1::ListQpsResponse qps;
  ASSERT_TRUE(gateways_->ListGatewayQps(Context().get(), list, &qps).ok());
  ASSERT_EQ(qps.qps_size(), 2) << "two parts";
  EXPECT_EQ(qps.qps(1).qpn(), 18u);
  gateway::v1::ListConnectionsResponse connections;
  ASSERT_TRUE(gateways_->ListGatewayConnections(Context().get(), list, &connections).ok());
  EXPECT_EQ(connections.connections(0).local_qpn(), 19u);
  gateway::v1::ListChannelsResponse channels;
  ASSERT_TRUE(gateways_->ListGatewayChannels(Context().get(), list, &channels).ok());
  EXPECT_EQ(channels.channels(0).number(), 23u);
  gateway::v1::ListSrqsResponse srqs;
  ASSERT_TRUE(gateways_->ListGatewaySrqs(Context().get(), list, &srqs).ok());
  EXPECT_EQ(srqs.srqs(0).held(), 29u);
  admin::v1::DiagnoseGatewayRequest diagnose;
  diagnose.set_name("gateways/g");
  gateway::v1::DiagnoseResponse diagnosis;
  ASSERT_TRUE(gateways_->DiagnoseGateway(Context().get(), diagnose, &diagnosis).ok());
  EXPECT_EQ(diagnosis.diagnoses(0).check(), "udp_port");
  gateway::v1::ListMrsResponse mrs;
  EXPECT_EQ(gateways_->ListGatewayMrs(Context().get(), list, &mrs).error_message(),
            "never heard of it");
  agent_->Join();
  agent_->silent_ = true;
  EXPECT_EQ(gateways_->GetGatewayStatus(Context(std::chrono::milliseconds(50)).get(), get, &status)
                .error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(GatewaysServiceTest, GatewayThatNobodyKnows_IsNotFound) {
  Connect();
  admin::v1::GetGatewayStatusRequest get;
  get.set_name("gateways/none");
  types::v1::GatewayStatus status;
  EXPECT_EQ(gateways_->GetGatewayStatus(Context().get(), get, &status).error_code(),
            grpc::StatusCode::NOT_FOUND);
  admin::v1::CaptureGatewayRequest capture;
  capture.set_name("gateways/none");
  const auto context = Context();
  EXPECT_EQ(gateways_->CaptureGateway(context.get(), capture)->Finish().error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(GatewaysServiceTest, EventsPoolsAndExplanations_ComeThroughTheTunnel) {
  Connect();
  admin::v1::ListGatewayObjectsRequest list;
  list.set_parent("gateways/g");
  gateway::v1::ListEventsResponse events;
  ASSERT_TRUE(gateways_->ListGatewayEvents(Context().get(), list, &events).ok());
  ASSERT_EQ(events.events_size(), 1);
  gateway::v1::ListPoolsResponse pools;
  ASSERT_TRUE(gateways_->ListGatewayPools(Context().get(), list, &pools).ok());
  ASSERT_EQ(pools.pools_size(), 1);
  admin::v1::ExplainPoolRequest explain;
  explain.set_name("tenants/a/pools/p");
  explain.set_gateway("gateways/g");
  explain.mutable_explain()->set_pool("tenants/b/pools/p");
  gateway::v1::ExplainResponse explanation;
  ASSERT_TRUE(pools_->ExplainPool(Context().get(), explain, &explanation).ok());
  ASSERT_EQ(explanation.findings_size(), 1);
  EXPECT_EQ(explanation.findings(0).object(), "tenants/a/pools/p") << "and not that of another";
  explain.set_name("tenants/-/pools/-");
  EXPECT_EQ(pools_->ExplainPool(Context().get(), explain, &explanation).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GatewaysServiceTest, Capture_ComesInPiecesAtThePaceOfTheCaller) {
  Connect();
  admin::v1::CapturePoolRequest request;
  request.set_name("tenants/a/pools/-");
  request.set_gateway("gateways/g");
  request.mutable_capture()->set_pool("tenants/b/pools/-");
  const auto context = Context();
  const auto stream = pools_->CapturePool(context.get(), request);
  EXPECT_EQ(agent_->AwaitCapture().pool(), "tenants/a/pools/-");
  const auto audited = Audited("CapturePool");
  ASSERT_EQ(audited.size(), 1u) << "before the first packet";
  EXPECT_EQ(audited[0].first, "gateways/g");
  EXPECT_NE(audited[0].second.find("tenants/a/pools/-"), std::string::npos) << audited[0].second;
  std::thread gateway([&] { agent_->SendPieces(100); });
  std::string all;
  std::string expected;
  gateway::v1::CaptureChunk chunk;
  uint64_t packets = 0;
  while (stream->Read(&chunk)) {
    all += chunk.data();
    packets = chunk.summary().packets();
  }
  gateway.join();
  for (int i = 0; i < 100; ++i) expected += std::to_string(i) + ";";
  EXPECT_EQ(all, expected);
  EXPECT_EQ(packets, 100u);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_LE(agent_->granted(), 8u);
}

TEST_F(GatewaysServiceTest, WhoCapturesAndWhoAdopts_IsInTheAudit) {
  Connect();
  admin::v1::CaptureGatewayRequest request;
  request.set_name("gateways/g");
  request.mutable_capture()->set_max_packets(7);
  request.mutable_capture()->mutable_duration()->set_seconds(3);
  const auto context = Context();
  const auto stream = gateways_->CaptureGateway(context.get(), request);
  (void)agent_->AwaitCapture();
  context->TryCancel();
  agent_->AwaitCancel();
  auto audited = Audited("CaptureGateway");
  ASSERT_EQ(audited.size(), 1u);
  EXPECT_EQ(audited[0].first, "gateways/g");
  for (const char* bound : {"\"duration\":\"3s\"", "\"maxPackets\":\"7\""})
    EXPECT_NE(audited[0].second.find(bound), std::string::npos) << audited[0].second;
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  admin::v1::AdoptFleetRequest adopt;
  adopt.set_name("gateways/-");
  admin::v1::AdoptFleetResponse adopted;
  ASSERT_TRUE(gateways_->AdoptFleet(Context().get(), adopt, &adopted).ok());
  audited = Audited("AdoptFleet");
  ASSERT_EQ(audited.size(), 1u);
  EXPECT_EQ(audited[0].first, "gateways/-");
}

TEST_F(GatewaysServiceTest, RotatedKeys_AreInTheAudit) {
  admin::v1::RotateFleetKeysResponse response;
  ASSERT_TRUE(gateways_->RotateFleetKeys(Context().get(), {}, &response).ok());
  EXPECT_GT(response.done_time().seconds(), response.start_time().seconds());
  const auto audited = Audited("RotateFleetKeys");
  ASSERT_EQ(audited.size(), 1u);
  EXPECT_EQ(audited[0].first, "gateways/-");
}

TEST_F(GatewaysServiceTest, AdoptTwiceUnderOneRequestId_IsOneAdoption) {
  constexpr char kUuid[] = "123e4567-e89b-12d3-a456-426614174000";
  using Answer = std::variant<uint32_t, grpc::StatusCode>;
  ConnectUnadopted();
  EXPECT_EQ(Adopt(kUuid), Answer(1u));
  ConnectUnadopted();
  EXPECT_EQ(Adopt(kUuid), Answer(1u)) << "the first call's answer";
  EXPECT_EQ(Audited("AdoptFleet").size(), 1u);
  EXPECT_EQ(hub_.Adopt("gateways/g"), 1u) << "who came since keeps what it has";
  EXPECT_EQ(Adopt(kUuid, "gateways/g"), Answer(grpc::StatusCode::INVALID_ARGUMENT));
  const auto kept = store_->Get(KeyOfRequest(kUuid)).value();
  controlplane::v1::RequestRecord record;
  ASSERT_TRUE(kept.has_value() && record.ParseFromString(kept->value));
  EXPECT_FALSE(record.under_way());
}

// The state after a controller was killed between the record and the answer.
TEST_F(GatewaysServiceTest, AdoptionWithoutAnAnswerYet_GoesOnWhenItIsRepeated) {
  constexpr char kUuid[] = "123e4567-e89b-12d3-a456-426614174000";
  using Answer = std::variant<uint32_t, grpc::StatusCode>;
  EXPECT_EQ(Adopt(kUuid), Answer(0u));
  const std::string key = KeyOfRequest(kUuid);
  controlplane::v1::RequestRecord record;
  ASSERT_TRUE(record.ParseFromString(store_->Get(key).value()->value));
  record.clear_intent();
  record.set_under_way(true);
  store::Transaction lost;
  lost.then = {store::Operation::Put(key, record.SerializeAsString())};
  ASSERT_TRUE(store_->Txn(std::move(lost)).ok());
  ConnectUnadopted();
  EXPECT_EQ(Adopt(kUuid), Answer(1u));
  EXPECT_EQ(Adopt(kUuid), Answer(1u));
  EXPECT_EQ(Audited("AdoptFleet").size(), 1u) << "it is one call";
}

TEST_F(GatewaysServiceTest, CaptureWhoseCallerGoes_IsCancelledAtTheGateway) {
  Connect();
  admin::v1::CaptureGatewayRequest request;
  request.set_name("gateways/g");
  const auto context = Context();
  const auto stream = gateways_->CaptureGateway(context.get(), request);
  (void)agent_->AwaitCapture();
  context->TryCancel();
  agent_->AwaitCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(GatewaysServiceTest, CaptureWhoseAgentGoes_EndsUnavailable) {
  Connect();
  admin::v1::CaptureGatewayRequest request;
  request.set_name("gateways/g");
  const auto context = Context();
  const auto stream = gateways_->CaptureGateway(context.get(), request);
  (void)agent_->AwaitCapture();
  tunnels_.Detach("gateways/g", agent_->tunnel_);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GatewaysServiceTest, CaptureWithoutBounds_IsRefused) {
  Connect();
  admin::v1::CaptureGatewayRequest request;
  request.set_name("gateways/g");
  request.mutable_capture()->mutable_duration()->set_seconds(601);
  const auto context = Context();
  EXPECT_EQ(gateways_->CaptureGateway(context.get(), request)->Finish().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GatewaysServiceTest, WatchedOperation_TellsItsSteps) {
  Connect();
  const auto context = Context();
  const auto watch = operations_->WatchOperations(context.get(), {});
  admin::v1::WatchOperationsResponse seen;
  ASSERT_TRUE(watch->Read(&seen));
  const types::v1::Operation begun = Drain();
  const auto await = [&](const auto& what) {
    while (seen.changed_size() != 1 || !what(seen.changed(0).status())) {
      if (!watch->Read(&seen)) return false;
    }
    return seen.changed(0).name() == begun.name();
  };
  Apply(model::RevisionOfEtag(begun.meta().etag()).value());
  Draining(false, 3);
  EXPECT_TRUE(await([](const auto& status) {
    return status.step().find("3 QPs") != std::string::npos;
  })) << seen.ShortDebugString();
  Draining(true, 0);
  EXPECT_TRUE(await([](const auto& status) { return status.done(); }));
  context->TryCancel();
}

TEST_F(GatewaysServiceTest, Progress_CountsWhoRunsARevision) {
  Connect();
  admin::v1::UpdateGatewayRequest update;
  update.mutable_gateway()->set_name("gateways/g");
  update.mutable_gateway()->mutable_spec()->mutable_capacity()->set_qps(5);
  types::v1::Gateway updated;
  ASSERT_TRUE(gateways_->UpdateGateway(Context().get(), update, &updated).ok());
  admin::v1::GetFleetProgressRequest request;
  request.set_revision(model::RevisionOfEtag(updated.meta().etag()).value());
  admin::v1::GetFleetProgressResponse progress;
  ASSERT_TRUE(gateways_->GetFleetProgress(Context().get(), request, &progress).ok());
  EXPECT_EQ(progress.connected(), 1u);
  EXPECT_EQ(progress.in_sync(), 0u);
  Apply(request.revision());
  ASSERT_TRUE(gateways_->GetFleetProgress(Context().get(), request, &progress).ok());
  EXPECT_EQ(progress.in_sync(), 1u);
  EXPECT_EQ(progress.version(), process::Version());
  EXPECT_NEAR(progress.read_time().seconds(), std::time(nullptr), 60);
  request.set_revision(1000000);
  EXPECT_EQ(gateways_->GetFleetProgress(Context().get(), request, &progress).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace rocegw::testing::gateways
