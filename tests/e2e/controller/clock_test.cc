// SPDX-License-Identifier: Apache-2.0
// A controller whose clock is wrong, and set right later: certificates stay usable, are renewed,
// and nobody joins anew.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "controlplane/identity/certificate.h"
#include "gateway/disk/durable_file.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"
#include "tests/e2e/controller/controller_host.h"

namespace rocegw::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

void SetAhead(const ControllerHost& host, std::chrono::seconds ahead) {
  std::ofstream(host.File("clock.new")) << ahead.count();
  ASSERT_EQ(rename(host.File("clock.new").c_str(), host.File("clock").c_str()), 0);
}

identity::CertificateFacts ServerFacts(const ControllerHost& host) {
  HealthAnswer answer;
  const grpc::Status status = CheckHealth(host.TlsChannel(host.Nobody()), &answer);
  EXPECT_TRUE(status.ok()) << status.error_message();
  auto facts = identity::FactsOfPem(answer.certificate);
  return facts.ok() ? *facts : identity::CertificateFacts();
}

grpc::Status RenewOn(const std::shared_ptr<grpc::Channel>& channel, const std::string& id) {
  fleet::v1::RenewRequest request;
  request.set_gateway("gateways/" + id);
  request.set_certificate_request(NewNodeKey().request);
  fleet::v1::RenewResponse response;
  return fleet::v1::NodeService::NewStub(channel)->Renew(ContextFor().get(), request, &response);
}

TEST(Clock, FirstStartInTheFuture_LaterStartsServe) {
  ControllerHost host;
  SetAhead(host, hours(24 * 50));
  host.StartWithClock();
  const Credential node = host.JoinNode("a");
  EXPECT_EQ(host.Stop(), 0);
  host.Start();
  const auto facts = ServerFacts(host);
  EXPECT_LE(facts.issued, identity::Now());
  EXPECT_LE(facts.not_after, identity::Now() + hours(24 * 90));
  const grpc::Status renewed = RenewOn(host.TlsChannel(node), "a");
  EXPECT_TRUE(renewed.ok()) << "without joining anew: " << renewed.error_message();
}

TEST(Clock, SetBackWhileItRuns_IsSaidAndTheCertificateRenewed) {
  ControllerHost host;
  SetAhead(host, hours(24 * 50));
  host.StartWithClock();
  EXPECT_GT(ServerFacts(host).issued, identity::Now());
  const Credential node = host.JoinNode("a");
  SetAhead(host, seconds(0));
  const auto deadline = std::chrono::steady_clock::now() + seconds(40);
  // Nobody answers for the moment in which it starts again.
  HealthAnswer answer;
  const auto issued = [&] {
    const grpc::Status status = CheckHealth(host.TlsChannel(host.Nobody()), &answer);
    auto facts = identity::FactsOfPem(answer.certificate);
    return status.ok() && facts.ok() ? facts->issued : identity::TimePoint::max();
  };
  while (issued() > identity::Now()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << host.process().Log();
  }
  EXPECT_TRUE(RenewOn(host.TlsChannel(node), "a").ok());
  EXPECT_TRUE(host.process().Logs("the clock of this host was set back by"));
}

TEST(Clock, SetForwardBeyondTheCertificatesEnd_IsRenewed) {
  ControllerHost host;
  SetAhead(host, seconds(0));
  host.StartWithClock();
  const auto on_disk = [&] {
    auto pem = ReadSmallFile(host.State("server.crt"));
    return identity::FactsOfPem(pem.value())->serial;
  };
  const std::string before = on_disk();
  SetAhead(host, hours(24 * 100));
  const auto deadline = std::chrono::steady_clock::now() + seconds(30);
  while (on_disk() == before) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << host.process().Log();
  }
  EXPECT_TRUE(host.process().Logs("was set forward by"));
}

TEST(Clock, BeforeTheProgramWasWritten_MakesNoAuthority) {
  ControllerHost host;
  SetAhead(host, hours(-24 * 365 * 20));
  const std::string said = host.FailWithClock();
  EXPECT_NE(said.find("the clock of this host says"), std::string::npos) << said;
}

}  // namespace
}  // namespace rocegw::testing
