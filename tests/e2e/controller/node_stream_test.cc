// SPDX-License-Identifier: Apache-2.0
// What a node's stream tells its agent, and what a node that says too much costs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "controlplane/model/objects_digest.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"
#include "tests/e2e/controller/controller_host.h"

namespace rocegw::testing {
namespace {

using fleet::v1::SyncRequest;
using fleet::v1::SyncResponse;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

SyncRequest HelloOf(const std::string& gateway) {
  SyncRequest request;
  request.mutable_hello()->set_gateway(gateway);
  return request;
}

TEST(NodeStream, ThatHasNothingToSend_IsAcceptedAtOnce) {
  ControllerHost host;
  host.Start();
  const auto channel = host.TlsChannel(host.JoinNode("a"));
  const auto stub = fleet::v1::NodeService::NewStub(channel);
  SyncRequest again = HelloOf("gateways/a");
  {
    const auto context = ContextFor();
    const auto stream = stub->Sync(context.get());
    SyncResponse first;
    ASSERT_TRUE(stream->Write(HelloOf("gateways/a")) && stream->Read(&first));
    ASSERT_FALSE(first.push().more());
    model::ObjectsDigest digest;
    for (const auto& object : first.push().objects()) digest.Add(object);
    again.mutable_hello()->set_store_uuid(first.push().store_uuid());
    again.mutable_hello()->set_applied_revision(first.push().revision());
    again.mutable_hello()->set_objects_digest(digest.value());
    context->TryCancel();
    (void)stream->Finish();
  }
  const auto context = ContextFor(seconds(15));
  const auto stream = stub->Sync(context.get());
  const auto begin = SteadyClock::now();
  ASSERT_TRUE(stream->Write(again));
  stream->WaitForInitialMetadata();
  EXPECT_LT(SteadyClock::now() - begin, seconds(10));
  context->TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// Each heartbeat is looked at under locks that all nodes share.
TEST(NodeStream, ManyHeartbeats_AreReadAtAPace) {
  ControllerHost host;
  host.Start();
  const auto stub = fleet::v1::NodeService::NewStub(host.TlsChannel(host.JoinNode("a")));
  const auto context = ContextFor(seconds(60));
  const auto stream = stub->Sync(context.get());
  SyncResponse push;
  ASSERT_TRUE(stream->Write(HelloOf("gateways/a")) && stream->Read(&push));
  const auto begin = SteadyClock::now();
  std::thread writer([&] {
    SyncRequest beat;
    for (int i = 1; i <= 300; ++i) {
      beat.mutable_heartbeat()->set_gateway_version(std::to_string(i));
      if (!stream->Write(beat)) return;
    }
  });
  const auto gateways = admin::v1::Gateways::NewStub(host.AdminChannel());
  admin::v1::GetGatewayRequest get;
  get.set_name("gateways/a");
  types::v1::Gateway gateway;
  int seen = 0;
  while (seen < 40 && SteadyClock::now() - begin < seconds(30)) {
    ASSERT_TRUE(gateways->GetGateway(ContextFor().get(), get, &gateway).ok());
    const std::string& version = gateway.status().gateway_version();
    seen = version.empty() ? 0 : std::stoi(version);
  }
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - begin);
  EXPECT_GE(seen, 40) << "it goes on";
  EXPECT_LE(seen, 34 + elapsed.count() / 100);
  context->TryCancel();
  writer.join();
  (void)stream->Finish();
}

}  // namespace
}  // namespace rocegw::testing
