// SPDX-License-Identifier: Apache-2.0
// Joining by the token of an agent's pod, with an API server of the test: who is let in, what the
// store and the audit have afterwards, and how many questions a stranger can cause.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <future>

#include "controlplane/api/nodes/enrollment.h"
#include "controlplane/api/nodes/pod_review.h"
#include "controlplane/identity/join_token.h"
#include "controlplane/store/local/memory_store.h"
#include "rocegw/admin/v1/gateways.pb.h"
#include "tests/support/apiserver/fake_api_server.h"
#include "tests/support/fleet_fixture.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing {
namespace {

using fleet::v1::JoinRequest;
using fleet::v1::JoinResponse;

constexpr char kAgent[] = "system:serviceaccount:rocegw:rocegw-agent";
constexpr char kAudience[] = "rocegw-join";

class PodJoinTest : public ::testing::Test {
 protected:
  PodJoinTest() { api_server_.PutToken("token-a", {kAgent, "a.example", kAudience}); }

  JoinRequest RequestFor(const std::string& id, const std::string& token) {
    JoinRequest request;
    request.set_gateway("gateways/" + id);
    request.set_service_account_token(token);
    request.set_certificate_request(identity::NewCertificateRequest(*key_).value());
    return request;
  }
  // Returns the reason of a refusal; empty: joined.
  std::string Join(const JoinRequest& request, JoinResponse* response = nullptr) {
    std::promise<std::string> reason;
    enrollment_.Join(caller_, request, [&](std::variant<JoinResponse, api::ApiError> outcome) {
      if (const auto* error = std::get_if<api::ApiError>(&outcome))
        return reason.set_value(error->reason);
      if (response != nullptr) *response = std::get<JoinResponse>(outcome);
      reason.set_value({});
    });
    return reason.get_future().get();
  }
  std::string Join(const std::string& id, const std::string& token) {
    return Join(RequestFor(id, token));
  }
  void Revoke(const std::string& gateway) {
    admin::v1::RevokeGatewayRequest request;
    request.set_name(gateway);
    std::promise<void> done;
    enrollment_.Revoke(api::CallOf(caller_, request), gateway,
                       [&](const std::optional<api::ApiError>& error) {
                         EXPECT_FALSE(error.has_value());
                         done.set_value();
                       });
    done.get_future().get();
  }
  std::vector<store::Entry> Entries(const std::string& prefix) {
    return store_->Range({.range = store::KeyRange::Prefix(prefix)}).value().entries;
  }

  const api::Admitted caller_{
      .principal = "", .peer = "ipv4:192.0.2.7:4711", .method = "/join", .tenants = {}};
  ScratchDirectory directory_;
  ScratchDirectory state_;
  FakeApiServer api_server_{directory_.File("")};
  kubeapi::ApiServer api_{api_server_.settings()};
  api::PodReview review_{api_, {.account = "rocegw/rocegw-agent", .audience = kAudience}};
  identity::Key key_ = std::move(*identity::NewKey());
  std::unique_ptr<identity::CertificateAuthority> authority_ =
      std::move(*identity::CertificateAuthority::Open(state_.File(""), "example"));
  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  std::unique_ptr<sync::FleetFollower> follower_ = std::move(*sync::FleetFollower::Start(*store_));
  api::Enrollment enrollment_{
      *store_, *follower_, *authority_, {.controllers = {"192.0.2.1:7471"}, .pods = &review_}};
};

TEST_F(PodJoinTest, PodOfTheNode_JoinsAsItsName_WithAnAuditRecordWithoutTheToken) {
  JoinResponse response;
  ASSERT_EQ(Join(RequestFor("a", "token-a"), &response), "");
  EXPECT_EQ(response.trust_bundle(), authority_->bundle());
  EXPECT_EQ(identity::FactsOfPem(response.certificate_chain()).value().uri,
            "spiffe://example/node/a");
  EXPECT_TRUE(store_->Get("intent/gateways/a").value().has_value());
  const auto audit = Entries("audit/");
  ASSERT_EQ(audit.size(), 1u);
  admin::v1::AuditRecord record;
  ASSERT_TRUE(record.ParseFromString(audit.front().value));
  EXPECT_EQ(record.principal(), "spiffe://example/node/a");
  EXPECT_EQ(record.peer(), caller_.peer);
  EXPECT_NE(record.request().find("a.example"), std::string::npos) << record.request();
  EXPECT_NE(record.request().find("rocegw/rocegw-agent"), std::string::npos);
  EXPECT_EQ(record.request().find("token-a"), std::string::npos);
}

TEST_F(PodJoinTest, TokenOfAnother_IsRefused) {
  api_server_.PutToken("stranger", {"system:serviceaccount:web:default", "a.example", kAudience});
  api_server_.PutToken("for-api", {kAgent, "a.example", "https://kubernetes.default.svc"});
  api_server_.PutToken("no-pod", {kAgent, "", kAudience});
  EXPECT_EQ(Join("a", "nonsense"), "TOKEN_UNKNOWN");
  EXPECT_EQ(Join("a", "for-api"), "TOKEN_UNKNOWN");
  EXPECT_EQ(Join("a", "stranger"), "OTHER_ACCOUNT");
  EXPECT_EQ(Join("a", "no-pod"), "NO_NODE");
  EXPECT_EQ(Join("b", "token-a"), "OTHER_NODE");
  EXPECT_TRUE(Entries("intent/").empty());
  EXPECT_TRUE(Entries("certificates/").empty());
  EXPECT_EQ(review_.counts().refused, 4u);
  EXPECT_EQ(review_.counts().confirmed, 1u);
}

TEST_F(PodJoinTest, NodeThatWasSetUpAnew_JoinsAgain_AnotherOfItsFirstLabelDoesNot) {
  EXPECT_EQ(Join("a", "token-a"), "");
  EXPECT_EQ(Join("a", "token-a"), "");
  api_server_.PutToken("other-zone", {kAgent, "a.other", kAudience});
  EXPECT_EQ(Join("a", "other-zone"), "NAME_TAKEN");
}

TEST_F(PodJoinTest, RevokedNode_TakesAJoinToken) {
  EXPECT_EQ(Join("a", "token-a"), "");
  Revoke("gateways/a");
  EXPECT_EQ(Join("a", "token-a"), "NODE_REVOKED");
}

TEST_F(PodJoinTest, RequestWithBothTokensOrNone_IsInvalid) {
  JoinRequest request = RequestFor("a", "token-a");
  request.set_token("rocegw-join-x");
  EXPECT_EQ(Join(request), "INVALID_FIELDS");
  EXPECT_EQ(Join("a", ""), "INVALID_FIELDS");
  EXPECT_TRUE(api_server_.calls().empty());
}

TEST_F(PodJoinTest, ControllerThatAdmitsNoPods_SaysSo) {
  api::Enrollment without(*store_, *follower_, *authority_, {});
  std::promise<std::string> reason;
  without.Join(caller_, RequestFor("a", "token-a"),
               [&](auto outcome) { reason.set_value(std::get<api::ApiError>(outcome).reason); });
  EXPECT_EQ(reason.get_future().get(), "PODS_NOT_ADMITTED");
}

TEST_F(PodJoinTest, ApiServerThatDoesNotAnswer_IsNoVerdict) {
  api_server_.FailWith(403);
  EXPECT_EQ(Join("a", "token-a"), "NO_TOKEN_REVIEW");
  EXPECT_EQ(review_.counts().failed, 1u);
  api_server_.FailWith(0);
  EXPECT_EQ(Join("a", "token-a"), "");
}

TEST_F(PodJoinTest, SourceBeyondItsLimit_CausesNoQuestions_AndHoldsUpNoOther) {
  const auto review = [&](const std::string& source, TimePoint now) {
    std::promise<std::string> reason;
    review_.Review(source, "nonsense", now, [&](auto outcome) {
      reason.set_value(std::get<api::ApiError>(outcome).reason);
    });
    return reason.get_future().get();
  };
  const TimePoint begin{1'000'000'000};
  int asked = 0;
  for (int i = 0; i < 30; ++i) {
    // Another port of one host, and another address of one host's IPv6 prefix.
    const std::string port = std::to_string(1000 + i);
    const std::string reason =
        review("ipv6:%5B2001:db8::" + std::to_string(i) + "%5D:" + port, begin);
    EXPECT_TRUE(reason == "TOKEN_UNKNOWN" || reason == "TOO_MANY_JOINS") << reason;
    asked += reason == "TOKEN_UNKNOWN" ? 1 : 0;
  }
  EXPECT_EQ(asked, 10);
  EXPECT_EQ(api_server_.calls().size(), 10u);
  EXPECT_EQ(review("ipv4:192.0.2.9:1", begin), "TOKEN_UNKNOWN");
  EXPECT_EQ(review("ipv6:%5B2001:db8::1%5D:9", begin + Seconds(1)), "TOKEN_UNKNOWN");
}

TEST(PodJoinSource, IsTheAddressWithoutThePort) {
  EXPECT_EQ(api::SourceOf("ipv4:192.0.2.7:1"), api::SourceOf("ipv4:192.0.2.7:2"));
  EXPECT_NE(api::SourceOf("ipv4:192.0.2.7:1"), api::SourceOf("ipv4:192.0.2.8:1"));
  EXPECT_EQ(api::SourceOf("ipv6:%5B2001:db8::1%5D:1"), api::SourceOf("ipv6:[2001:db8::2]:2"));
  EXPECT_NE(api::SourceOf("ipv6:%5B2001:db8::1%5D:1"),
            api::SourceOf("ipv6:%5B2001:db8:0:1::1%5D:1"));
  EXPECT_EQ(api::SourceOf("ipv6:%5Bfe80::1%25eth0%5D:1"), api::SourceOf("ipv6:[fe80::1]:1"));
  EXPECT_NE(api::SourceOf("ipv6:[::ffff:192.0.2.1]:1"), api::SourceOf("ipv6:[::ffff:192.0.2.2]:1"));
}

TEST_F(PodJoinTest, FileForPods_HasNoToken) {
  const std::string text = enrollment_.PodJoinFile();
  const auto file = identity::ReadJoinFile(text);
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file.value().token, "");
  EXPECT_EQ(file.value().controllers, std::vector<std::string>{"192.0.2.1:7471"});
  EXPECT_EQ(file.value().server_name, "controller.example");
  EXPECT_EQ(file.value().trust_bundle, authority_->bundle());
  EXPECT_EQ(text.find("rocegw-join-"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::testing
