// SPDX-License-Identifier: Apache-2.0
// The agent's end of its streams, against a server in the same process.
#include "agent/sync/controller_link.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "gateway/loop/control_loop.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"

namespace rocegw::agent {
namespace {

// Controller that accepts each stream and sends nothing.
class SilentController final : public fleet::v1::NodeService::CallbackService {
 public:
  grpc::ServerBidiReactor<fleet::v1::SyncRequest, fleet::v1::SyncResponse>* Sync(
      grpc::CallbackServerContext*) override {
    class Taken final
        : public grpc::ServerBidiReactor<fleet::v1::SyncRequest, fleet::v1::SyncResponse> {
     public:
      Taken() { StartSendInitialMetadata(); }
      void OnCancel() override { Finish(grpc::Status::CANCELLED); }
      void OnDone() override { delete this; }
    };
    return new Taken();
  }
};

TEST(ControllerLink, StreamThatIsTaken_IsToldWithoutAPush) {
  SilentController controller;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&controller);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  // Never destroyed: gRPC's threads may post to the loop until the process ends.
  static ControlLoop& loop = *new ControlLoop();
  ASSERT_TRUE(loop.Open().ok());
  bool accepted = false;
  ControllerEvents events;
  events.opened = [] {};
  events.accepted = [&] {
    accepted = true;
    loop.Stop();
  };
  events.push = [](const types::v1::Push&) {};
  events.closed = [](const grpc::Status&) {};
  events.question = [](const fleet::v1::TunnelQuestion&) {};
  events.tunnel_closed = [] {};
  auto link = std::make_unique<ControllerLink>(
      loop,
      [&] {
        return grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                   grpc::InsecureChannelCredentials());
      },
      "gateways/a", std::move(events));
  link->Start();
  loop.At(ControlLoop::Now() + Seconds(20), [&] { loop.Stop(); });
  loop.Run();
  EXPECT_TRUE(accepted);
  link.reset();
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
}

}  // namespace
}  // namespace rocegw::agent
