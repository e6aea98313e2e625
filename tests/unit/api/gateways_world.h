// SPDX-License-Identifier: Apache-2.0
// Services about gateways over gRPC on a unix socket, with one known gateway. The test provides
// agents.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/api/services/gateways_service.h"
#include "controlplane/api/services/operations_service.h"
#include "controlplane/api/services/pools_service.h"
#include "controlplane/store/local/memory_store.h"
#include "controlplane/sync/operation_keeper.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing::gateways {

using admin::v1::Gateways;
using admin::v1::Operations;

class GatewaysWorld : public ::testing::Test {
 protected:
  GatewaysWorld() {
    const std::string socket = "unix:" + directory_.File("gw.sock");
    grpc::ServerBuilder builder;
    builder.AddListeningPort(socket, grpc::experimental::LocalServerCredentials(UDS));
    builder.RegisterService(&gateways_service_);
    builder.RegisterService(&operations_service_);
    builder.RegisterService(&pools_service_);
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(socket, grpc::experimental::LocalCredentials(UDS));
    gateways_ = Gateways::NewStub(channel_);
    operations_ = Operations::NewStub(channel_);
    pools_ = admin::v1::Pools::NewStub(channel_);
    Create("gateways/g");
  }
  // Calls end before the objects that they use.
  void Stop() { server_->Shutdown(std::chrono::system_clock::now()); }
  void Create(const std::string& name) {
    admin::v1::CreateGatewayRequest request;
    request.mutable_gateway()->set_name(name);
    types::v1::Gateway created;
    EXPECT_TRUE(gateways_->CreateGateway(Context().get(), request, &created).ok());
    AwaitNewest();
  }

  static std::unique_ptr<grpc::ClientContext> Context(
      std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + deadline);
    return context;
  }
  // Questions and streams use the follower's fleet, which may be older than a write.
  void AwaitNewest() {
    const auto seen = std::make_shared<std::promise<void>>();
    auto future = seen->get_future();
    follower_->WhenNewest([seen](const auto&) { seen->set_value(); });
    future.wait();
  }
  // Returns resource and request of the audit records of this method.
  std::vector<std::pair<std::string, std::string>> Audited(const std::string& method) {
    std::vector<std::pair<std::string, std::string>> found;
    const auto page = store_->Range({.range = store::KeyRange::Prefix("audit/")});
    for (const store::Entry& entry : page.value().entries) {
      admin::v1::AuditRecord record;
      EXPECT_TRUE(record.ParseFromString(entry.value));
      if (!record.method().ends_with("/" + method)) continue;
      EXPECT_EQ(record.principal(), "local:admin");
      found.emplace_back(record.resource(), record.request());
    }
    return found;
  }

  ScratchDirectory directory_;
  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  std::unique_ptr<sync::FleetFollower> follower_ = std::move(*sync::FleetFollower::Start(*store_));
  api::Writer writer_{*store_, *follower_};
  api::Backend backend_{*store_, *follower_, writer_};
  std::unique_ptr<identity::CertificateAuthority> authority_ =
      std::move(*identity::CertificateAuthority::Open(directory_.File(""), "example"));
  api::Enrollment enrollment_{*store_, *follower_, *authority_, {}};
  sync::StatusWriter statuses_{*store_, std::chrono::milliseconds(1)};
  sync::NodeHub hub_{*follower_, statuses_, store_->uuid()};
  sync::TunnelHub tunnels_;
  api::Replicas replicas_{*follower_, "self", nullptr};
  api::QuestionRouter router_{tunnels_, replicas_};
  sync::OperationKeeper keeper_{*follower_, statuses_};
  api::GatewaysService gateways_service_{backend_, hub_, replicas_, router_, enrollment_};
  api::OperationsService operations_service_{backend_};
  api::PoolsService pools_service_{backend_, router_};
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Gateways::Stub> gateways_;
  std::unique_ptr<Operations::Stub> operations_;
  std::unique_ptr<admin::v1::Pools::Stub> pools_;
};

}  // namespace rocegw::testing::gateways
