// SPDX-License-Identifier: Apache-2.0
// Who gets through TLS, and for how long: no certificate, foreign, expired, of another name,
// revoked, and certificates that change while clients call.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "controlplane/identity/certificate.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"
#include "tests/e2e/controller/controller_host.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing {
namespace {

using admin::v1::Tenants;
using grpc::StatusCode;
using std::chrono::seconds;

grpc::Status ListTenants(const std::shared_ptr<grpc::Channel>& channel) {
  admin::v1::ListTenantsResponse response;
  return Tenants::NewStub(channel)->ListTenants(ContextFor().get(), {}, &response);
}

grpc::Status Renew(const std::shared_ptr<grpc::Channel>& channel, const std::string& id) {
  fleet::v1::RenewRequest request;
  request.set_gateway("gateways/" + id);
  request.set_certificate_request(NewNodeKey().request);
  fleet::v1::RenewResponse response;
  return fleet::v1::NodeService::NewStub(channel)->Renew(ContextFor().get(), request, &response);
}

TEST(Tls, WithoutCertificate_OnlyJoinAndHealthAnswer) {
  ControllerHost host;
  host.Start();
  const auto channel = host.TlsChannel(host.Nobody());
  EXPECT_TRUE(CheckHealth(channel).ok());
  const grpc::Status listed = ListTenants(channel);
  EXPECT_EQ(listed.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_NE(listed.error_message().find("client certificate is needed"), std::string::npos);
  EXPECT_EQ(Renew(channel, "a").error_code(), StatusCode::UNAUTHENTICATED);
  fleet::v1::JoinRequest request;
  request.set_gateway("gateways/a");
  request.set_token("wrong");
  request.set_certificate_request("x");
  fleet::v1::JoinResponse response;
  EXPECT_EQ(ReasonOf(fleet::v1::NodeService::NewStub(channel)->Join(ContextFor().get(), request,
                                                                    &response)),
            "TOKEN_UNKNOWN");
}

TEST(Tls, CertificatesThatAreNotGood_GetNoConnection) {
  ControllerHost host;
  host.Start();
  const auto own = host.Authority();
  const ScratchDirectory elsewhere;
  const auto foreign = identity::CertificateAuthority::Open(elsewhere.File(""), "rocegw");
  auto key = identity::NewKey();
  const std::string key_text = identity::KeyToPem(**key).value();
  const std::string serial = identity::NewSerial(identity::Now());
  const auto with = [&](const StatusOr<identity::Issued>& issued) {
    return Credential{.key = key_text, .certificate = issued.value().pem, .trust = host.trust()};
  };
  const auto good = with(own->IssueUser(**key, "u", seconds(60), serial));
  EXPECT_EQ(ListTenants(host.TlsChannel(good)).error_code(), StatusCode::PERMISSION_DENIED)
      << "known, but nobody has given it a role";
  const auto expired = with(own->IssueUser(**key, "u", seconds(-1), serial));
  EXPECT_EQ(ListTenants(host.TlsChannel(expired)).error_code(), StatusCode::UNAVAILABLE);
  const auto stranger = with(foreign.value()->IssueUser(**key, "u", seconds(60), serial));
  EXPECT_EQ(ListTenants(host.TlsChannel(stranger)).error_code(), StatusCode::UNAVAILABLE);
  // And clients do not take another for the controller.
  Credential deceived = good;
  deceived.trust = foreign.value()->bundle();
  EXPECT_EQ(ListTenants(host.TlsChannel(deceived)).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_EQ(ListTenants(host.TlsChannel(good, "other.example")).error_code(),
            StatusCode::UNAVAILABLE);
  EXPECT_EQ(ListTenants(host.TlsChannel(good, "controller.rocegw")).error_code(),
            StatusCode::PERMISSION_DENIED);
}

TEST(Tls, CertificateThatExpiresMeanwhile_EndsWhatTheConnectionMay) {
  ControllerHost host("certificates: {node_lifetime: 3s}\n");
  host.Start();
  const auto channel = host.TlsChannel(host.JoinNode("a"));
  ASSERT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + seconds(2)));
  grpc::Status status;
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  // Of a foreign gateway: denied while the certificate is good.
  while ((status = Renew(channel, "b")).error_code() == StatusCode::PERMISSION_DENIED) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  EXPECT_EQ(status.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_NE(status.error_message().find("expired"), std::string::npos) << status.error_message();
}

TEST(Tls, RenewedNode_ShutsItsOldCertificateOut) {
  ControllerHost host;
  host.Start();
  const Credential old = host.JoinNode("a");
  const auto old_channel = host.TlsChannel(old);
  const NodeKey key = NewNodeKey();
  fleet::v1::RenewRequest request;
  request.set_gateway("gateways/a");
  request.set_certificate_request(key.request);
  fleet::v1::RenewResponse response;
  ASSERT_TRUE(fleet::v1::NodeService::NewStub(old_channel)
                  ->Renew(ContextFor().get(), request, &response)
                  .ok());
  EXPECT_EQ(Renew(old_channel, "b").error_code(), StatusCode::PERMISSION_DENIED) << "still good";
  const auto renewed = host.TlsChannel({.key = key.key,
                                        .certificate = response.certificate_chain(),
                                        .trust = response.trust_bundle()});
  EXPECT_EQ(Renew(renewed, "b").error_code(), StatusCode::PERMISSION_DENIED) << "seen";
  const auto deadline = std::chrono::steady_clock::now() + seconds(5);
  while (Renew(old_channel, "b").error_code() != StatusCode::UNAUTHENTICATED) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  EXPECT_TRUE(Renew(renewed, "a").ok());
}

// `put_out`: what an administrator does to gateways/a, which ends its stream and nobody else's.
void ExpectToLoseItsStream(ControllerHost& host,
                           const std::function<grpc::Status(admin::v1::Gateways::Stub&)>& put_out) {
  const auto channel = host.TlsChannel(host.JoinNode("a"));
  const auto other_channel = host.TlsChannel(host.JoinNode("b"));
  const auto stub = fleet::v1::NodeService::NewStub(channel);
  const auto other_stub = fleet::v1::NodeService::NewStub(other_channel);
  const auto context = ContextFor(seconds(60));
  const auto other_context = ContextFor(seconds(60));
  const auto stream = stub->Sync(context.get());
  const auto other = other_stub->Sync(other_context.get());
  fleet::v1::SyncRequest hello;
  fleet::v1::SyncResponse push;
  hello.mutable_hello()->set_gateway("gateways/a");
  ASSERT_TRUE(stream->Write(hello) && stream->Read(&push)) << stream->Finish().error_message();
  hello.mutable_hello()->set_gateway("gateways/b");
  ASSERT_TRUE(other->Write(hello) && other->Read(&push));

  const auto begin = std::chrono::steady_clock::now();
  const grpc::Status done = put_out(*admin::v1::Gateways::NewStub(host.AdminChannel()));
  ASSERT_TRUE(done.ok()) << done.error_message();
  while (stream->Read(&push)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
  EXPECT_EQ(Renew(channel, "a").error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Renew(host.TlsChannel(host.JoinNode("c")), "c").error_code(), StatusCode::OK);
  EXPECT_TRUE(Renew(other_channel, "b").ok()) << "others are not concerned";
  other_context->TryCancel();
  EXPECT_EQ(other->Finish().error_code(), StatusCode::CANCELLED);
}

TEST(Tls, RevokedNode_LosesItsStreamWithinFiveSeconds) {
  ControllerHost host;
  host.Start();
  ExpectToLoseItsStream(host, [](admin::v1::Gateways::Stub& gateways) {
    admin::v1::RevokeGatewayRequest request;
    request.set_name("gateways/a");
    admin::v1::RevokeGatewayResponse response;
    return gateways.RevokeGateway(ContextFor().get(), request, &response);
  });
}

TEST(Tls, NodeOfADeletedGateway_LosesItsStreamAndComesBackOnlyByJoining) {
  ControllerHost host;
  host.Start();
  const auto gateways = admin::v1::Gateways::NewStub(host.AdminChannel());
  admin::v1::GetGatewayRequest get;
  get.set_name("gateways/a");
  types::v1::Gateway gateway;
  ExpectToLoseItsStream(host, [](admin::v1::Gateways::Stub& stub) {
    admin::v1::DeleteGatewayRequest request;
    request.set_name("gateways/a");
    admin::v1::DeleteGatewayResponse response;
    return stub.DeleteGateway(ContextFor().get(), request, &response);
  });
  EXPECT_EQ(gateways->GetGateway(ContextFor().get(), get, &gateway).error_code(),
            StatusCode::NOT_FOUND);
  EXPECT_TRUE(Renew(host.TlsChannel(host.JoinNode("a")), "a").ok()) << "with a token for its name";
  EXPECT_TRUE(gateways->GetGateway(ContextFor().get(), get, &gateway).ok());
}

// Half of the certificate's life is over four seconds after its issue; gRPC takes the new one up
// within two.
TEST(Tls, ServersCertificate_ChangesUnderLoadWithoutAFailedCall) {
  ControllerHost host("certificates: {server_lifetime: 8s}\n");
  host.Start();
  std::atomic<bool> enough{false};
  std::atomic<int> calls{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> clients;
  // One that keeps its connection, and one that makes a new one for each call.
  clients.emplace_back([&] {
    // A user without a role: a stranger's connection would end at its limit of bytes.
    const auto channel = host.TlsChannel(host.MakeUser("u"));
    while (!enough) {
      ++calls;
      if (ListTenants(channel).error_code() != StatusCode::PERMISSION_DENIED) ++failed;
    }
  });
  std::set<std::string> serials;
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  while (serials.size() < 3 && std::chrono::steady_clock::now() < deadline) {
    HealthAnswer answer;
    ++calls;
    if (!CheckHealth(host.TlsChannel(host.Nobody()), &answer).ok()) ++failed;
    const auto facts = identity::FactsOfPem(answer.certificate);
    if (facts.ok()) serials.insert(facts.value().serial);
  }
  enough = true;
  for (std::thread& client : clients) client.join();
  EXPECT_GE(serials.size(), 3u);
  EXPECT_EQ(failed, 0) << "of " << calls;
  EXPECT_GT(calls, 100);
}

}  // namespace
}  // namespace rocegw::testing
