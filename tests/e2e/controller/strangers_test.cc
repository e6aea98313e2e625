// SPDX-License-Identifier: Apache-2.0
// Callers without a certificate: many connections, idle ones and many calls of Join shut nobody
// out.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"
#include "tests/e2e/controller/controller_host.h"

namespace rocegw::testing {
namespace {

using grpc::StatusCode;
using std::chrono::seconds;

std::vector<UniqueFd> ConnectSilently(const std::string& address, int count) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  std::vector<UniqueFd> silent;
  for (int i = 0; i < count; ++i) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    silent.push_back(std::move(fd));
  }
  return silent;
}

grpc::Status RenewAs(const std::shared_ptr<grpc::Channel>& channel, const std::string& id) {
  fleet::v1::RenewRequest request;
  request.set_gateway("gateways/" + id);
  request.set_certificate_request(NewNodeKey().request);
  fleet::v1::RenewResponse response;
  return fleet::v1::NodeService::NewStub(channel)->Renew(ContextFor().get(), request, &response);
}

TEST(Strangers, SilentConnections_ShutNobodyOut) {
  ControllerHost host;
  host.StartWithDescriptors(256);
  const auto member = host.TlsChannel(host.JoinNode("a"));
  ASSERT_TRUE(RenewAs(member, "a").ok());
  const auto silent = ConnectSilently(host.address(), 400);
  // One that is connected, one that comes anew, one that has no certificate yet.
  EXPECT_TRUE(RenewAs(member, "a").ok());
  const Credential joined = host.JoinNode("b");
  EXPECT_TRUE(RenewAs(host.TlsChannel(joined), "b").ok());
  EXPECT_TRUE(CheckHealth(host.TlsChannel(host.Nobody())).ok());
  EXPECT_TRUE(host.process().Logs("at the limits of callers")) << host.process().Log();
}

TEST(Strangers, MembersConnections_AreNotAStrangers) {
  ControllerHost host;
  host.StartWithDescriptors(256);
  const Credential node = host.JoinNode("a");
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 40; ++i) {
    channels.push_back(host.TlsChannel(node));
    // Of a foreign gateway: refused after the certificate was taken.
    ASSERT_EQ(RenewAs(channels.back(), "b").error_code(), StatusCode::PERMISSION_DENIED);
  }
  const auto silent = ConnectSilently(host.address(), 100);
  for (const auto& channel : channels) {
    EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
    EXPECT_EQ(RenewAs(channel, "b").error_code(), StatusCode::PERMISSION_DENIED);
  }
}

}  // namespace
}  // namespace rocegw::testing
