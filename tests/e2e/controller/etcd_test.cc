// SPDX-License-Identifier: Apache-2.0
// Two controllers over one etcd: one fleet, one authority, one housekeeper.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

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

TEST(ControllersOnEtcd, AreOneFleet) {
  const EtcdCluster cluster(1);
  ControllerHost first(StoreIn(cluster));
  ControllerHost second(StoreIn(cluster));
  first.Start();
  {
    // An authority of its own would make two fleets of one store.
    DaemonProcess stranger(CONTROLLER, second.File(""), {"--config", second.config_file()});
    EXPECT_EQ(stranger.WaitExit(), 3);
    EXPECT_NE(stranger.Log().find("copy ca.key and ca.crt"), std::string::npos) << stranger.Log();
  }
  for (const char* name : {"ca.key", "ca.crt"}) {
    fs::copy_file(first.State(name), second.State(name), fs::copy_options::overwrite_existing);
  }
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

TEST(ControllersOnEtcd, NoEtcd_IsSaidWithWhatWasTried) {
  ControllerHost host("store: {backend: etcd, etcd: {endpoints: ['127.0.0.1:1']}}\n");
  DaemonProcess controller(CONTROLLER, host.File(""), {"--config", host.config_file()});
  EXPECT_EQ(controller.WaitExit(), 3);
  EXPECT_NE(controller.Log().find("127.0.0.1:1"), std::string::npos) << controller.Log();
}

}  // namespace
}  // namespace rocegw::testing
