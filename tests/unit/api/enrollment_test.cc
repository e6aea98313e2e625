// SPDX-License-Identifier: Apache-2.0
// Joining, renewal and revocation on a store in memory: contents of the transactions, and
// concurrent calls. NodeService over a unix socket.
#include "controlplane/api/nodes/enrollment.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "controlplane/api/nodes/fleet_keys.h"
#include "controlplane/api/nodes/node_service.h"
#include "controlplane/identity/fleet_key_rotation.h"
#include "controlplane/identity/join_token.h"
#include "controlplane/model/stored.h"
#include "controlplane/store/local/memory_store.h"
#include "google/rpc/error_details.pb.h"
#include "rocegw/admin/v1/gateways.pb.h"
#include "tests/support/fleet_fixture.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing::enrollment {
namespace {

using fleet::v1::JoinRequest;
using fleet::v1::JoinResponse;

class EnrollmentTest : public ::testing::Test {
 protected:
  std::string MakeToken(const std::string& gateway = {}) {
    std::promise<std::string> text;
    enrollment_.CreateToken(caller_, gateway, {},
                            [&](std::variant<std::string, api::ApiError> outcome) {
                              text.set_value(std::get<std::string>(outcome));
                            });
    const auto file = identity::ReadJoinFile(text.get_future().get());
    EXPECT_TRUE(file.ok()) << file.status().text();
    EXPECT_EQ(file.value().controllers, std::vector<std::string>{"192.0.2.1:7471"});
    EXPECT_EQ(file.value().server_name, "controller.example");
    EXPECT_EQ(file.value().gateway, gateway);
    return file.value().token;
  }
  JoinRequest RequestFor(const std::string& id, const std::string& token) {
    JoinRequest request;
    request.set_gateway("gateways/" + id);
    request.set_token(token);
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
  std::string Renew(const std::string& id, const std::string& serial) {
    fleet::v1::RenewRequest request;
    request.set_gateway("gateways/" + id);
    request.set_certificate_request(identity::NewCertificateRequest(*key_).value());
    std::promise<std::string> answer;
    enrollment_.Renew(caller_, request, serial,
                      [&](std::variant<fleet::v1::RenewResponse, api::ApiError> outcome) {
                        if (const auto* error = std::get_if<api::ApiError>(&outcome))
                          return answer.set_value(error->reason);
                        auto facts = identity::FactsOfPem(
                            std::get<fleet::v1::RenewResponse>(outcome).certificate_chain());
                        answer.set_value(facts->serial);
                      });
    return answer.get_future().get();
  }
  // Returns the reason of a refusal; empty: revoked.
  std::string Revoke(const std::string& gateway, const std::string& request_id = {}) {
    admin::v1::RevokeGatewayRequest request;
    request.set_name(gateway);
    request.set_request_id(request_id);
    std::promise<std::string> reason;
    enrollment_.Revoke(api::CallOf(caller_, request), gateway,
                       [&](const std::optional<api::ApiError>& error) {
                         reason.set_value(error.has_value() ? error->reason : "");
                       });
    return reason.get_future().get();
  }
  std::variant<admin::v1::RotateFleetKeysResponse, api::ApiError> RotateKeys(
      const std::string& request_id) {
    admin::v1::RotateFleetKeysRequest request;
    request.set_request_id(request_id);
    std::promise<std::variant<admin::v1::RotateFleetKeysResponse, api::ApiError>> answer;
    enrollment_.RotateKeys(api::CallOf(caller_, request),
                           [&](const auto& outcome) { answer.set_value(outcome); });
    return answer.get_future().get();
  }
  std::optional<store::Entry> KeyRecord() {
    return store_->Get(std::string(model::kFleetKeysKey)).value();
  }
  // Returns the keys that a host with this certificate gets at the time; nullopt: refused.
  std::optional<identity::FleetKeySchedule::Keys> KeysFor(const std::string& serial,
                                                          identity::TimePoint now) {
    std::promise<void> newest;
    follower_->WhenNewest([&](const auto&) { newest.set_value(); });
    newest.get_future().wait();
    return follower_->Read([&](const sync::Fleet& fleet) {
      return api::FleetKeysFor(fleet, schedule_, identity::PeerCertificate{"node/a", serial}, now);
    });
  }
  size_t Count(const std::string& prefix) {
    return store_->Range({.range = store::KeyRange::Prefix(prefix)}).value().entries.size();
  }

  const api::Admitted caller_{
      .principal = "local:admin", .peer = "unix:", .method = "/m", .tenants = {}};
  ScratchDirectory directory_;
  identity::Key key_ = std::move(*identity::NewKey());
  std::unique_ptr<identity::CertificateAuthority> authority_ =
      std::move(*identity::CertificateAuthority::Open(directory_.File(""), "example"));
  const identity::FleetKeySchedule schedule_{"secret", std::chrono::hours(24)};
  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  std::unique_ptr<sync::FleetFollower> follower_ = std::move(*sync::FleetFollower::Start(*store_));
  api::Enrollment enrollment_{
      *store_,
      *follower_,
      *authority_,
      {.node_lifetime = std::chrono::hours(24), .controllers = {"192.0.2.1:7471"}}};
};

TEST_F(EnrollmentTest, Join_MakesTheGatewayAndItsAuditRecordTogether) {
  const std::string token = MakeToken();
  JoinResponse response;
  ASSERT_EQ(Join(RequestFor("a", token), &response), "");
  EXPECT_EQ(response.trust_bundle(), authority_->bundle());
  EXPECT_EQ(identity::FactsOfPem(response.certificate_chain()).value().uri,
            "spiffe://example/node/a");
  const auto intent = store_->Get("intent/gateways/a");
  const auto audit = store_->Range({.range = store::KeyRange::Prefix("audit/")});
  ASSERT_TRUE(intent.value().has_value());
  ASSERT_EQ(audit.value().entries.size(), 2u) << "the token and the join";
  EXPECT_EQ(audit.value().entries.back().mod_revision, intent.value()->mod_revision);
  admin::v1::AuditRecord record;
  ASSERT_TRUE(record.ParseFromString(audit.value().entries.back().value));
  EXPECT_EQ(record.principal(), "spiffe://example/node/a");
  EXPECT_EQ(record.resource(), "gateways/a");
  for (const auto& entry : audit.value().entries) {
    EXPECT_EQ(entry.value.find(token), std::string::npos) << "a secret in the audit";
  }
}

TEST_F(EnrollmentTest, Join_OfAGatewayThatWasMadeBefore_KeepsWhatWasSaidAboutIt) {
  types::v1::Gateway gateway = GatewayWith("a", "z");
  gateway.mutable_spec()->mutable_capacity()->set_qps(10);
  ASSERT_TRUE(
      store_
          ->Txn({.compares = {},
                 .then = {store::Operation::Put("intent/gateways/a", gateway.SerializeAsString())},
                 .otherwise = {}})
          .ok());
  EXPECT_EQ(Join(RequestFor("a", MakeToken())), "");
  types::v1::Gateway is;
  ASSERT_TRUE(is.ParseFromString((*store_->Get("intent/gateways/a"))->value));
  EXPECT_EQ(is.spec().capacity().qps(), 10u);
}

TEST_F(EnrollmentTest, JoinsAtTheSameTime_AllGetIn_AndATokenServesOnce) {
  constexpr int kHosts = 8;
  std::vector<std::string> tokens(kHosts);
  for (std::string& token : tokens) token = MakeToken();
  std::atomic<int> joined{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> hosts;
  for (int i = 0; i < kHosts; ++i) {
    hosts.emplace_back([&, i] {
      const std::string id = "h" + std::to_string(i);
      joined += Join(RequestFor(id, tokens[i])).empty() ? 1 : 0;
    });
    hosts.emplace_back([&, i] {
      const std::string id = "h" + std::to_string(i + kHosts);
      refused += Join(RequestFor(id, tokens[i])).empty() ? 0 : 1;
    });
  }
  for (std::thread& host : hosts) host.join();
  // With one token for two hosts, either may be the first.
  EXPECT_EQ(joined + (kHosts - refused), kHosts);
  EXPECT_EQ(Count("intent/gateways/"), size_t{kHosts});
  EXPECT_EQ(Count("certificates/node/"), size_t{kHosts});
}

TEST_F(EnrollmentTest, Revoked_CannotRenewAndJoinsAnewWithATokenForItsName) {
  JoinResponse response;
  ASSERT_EQ(Join(RequestFor("a", MakeToken()), &response), "");
  const std::string serial = identity::FactsOfPem(response.certificate_chain()).value().serial;
  EXPECT_EQ(Renew("a", serial).size(), serial.size());
  EXPECT_EQ(Revoke("gateways/a"), "");
  EXPECT_EQ(Renew("a", serial), "CERTIFICATE_REVOKED");
  EXPECT_EQ(Join(RequestFor("a", MakeToken())), "NAME_TAKEN");
  EXPECT_EQ(Join(RequestFor("a", MakeToken("gateways/a"))), "");
  EXPECT_EQ(Count("intent/gateways/"), 1u);
}

TEST_F(EnrollmentTest, RevokedTwiceUnderOneRequestId_IsRevokedOnce) {
  constexpr char kUuid[] = "123e4567-e89b-12d3-a456-426614174000";
  ASSERT_EQ(Join(RequestFor("a", MakeToken())), "");
  EXPECT_EQ(Revoke("gateways/a", kUuid), "");
  JoinResponse response;
  ASSERT_EQ(Join(RequestFor("a", MakeToken("gateways/a")), &response), "");
  const std::string serial = identity::FactsOfPem(response.certificate_chain()).value().serial;
  const store::Revision before = store_->Range({}).value().revision;
  EXPECT_EQ(Revoke("gateways/a", kUuid), "");
  EXPECT_EQ(store_->Range({}).value().revision, before) << "nothing is written, no audit record";
  EXPECT_EQ(Renew("a", serial).size(), serial.size()) << "what was issued since is good";
  EXPECT_EQ(Revoke("gateways/b", kUuid), "REQUEST_ID_REUSED");
  EXPECT_FALSE(store_->Get("certificates/node/b").value().has_value());
}

TEST_F(EnrollmentTest, RevokedAtTheSameTimeUnderOneRequestId_IsRevokedOnce) {
  constexpr char kUuid[] = "123e4567-e89b-12d3-a456-426614174000";
  const size_t audited = Count("audit/");
  std::vector<std::thread> callers(8);
  for (std::thread& caller : callers)
    caller = std::thread([&] { EXPECT_EQ(Revoke("gateways/a", kUuid), ""); });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(Count("audit/"), audited + 1);
  const auto certificates = store_->Get("certificates/node/a").value();
  api::Call call;
  call.principal = caller_.principal;
  call.request_id = kUuid;
  const auto request = store_->Get(api::RequestKey(call)).value();
  ASSERT_TRUE(certificates.has_value() && request.has_value());
  EXPECT_EQ(certificates->mod_revision, request->mod_revision) << "together";
}

TEST_F(EnrollmentTest, DeletedGateway_IsRevokedInTheSameTransaction) {
  JoinResponse response;
  ASSERT_EQ(Join(RequestFor("a", MakeToken()), &response), "");
  const std::string serial = identity::FactsOfPem(response.certificate_chain()).value().serial;
  api::Writer writer(*store_, *follower_);
  std::promise<bool> deleted;
  int planned = 0;
  // The follower may not know the join yet.
  const store::Revision joined = store_->Range({}).value().revision;
  writer.Write(
      {.method = "/m"}, joined,
      [&](const sync::Fleet& fleet) {
        auto plan = enrollment_.PlanDelete(fleet, "gateways/a", {}, identity::Now());
        // A renewal between plan and transaction makes the plan obsolete.
        if (++planned == 1) {
          EXPECT_EQ(Renew("a", serial).size(), serial.size());
        }
        return plan;
      },
      [&](const api::WrittenOrError& written) {
        deleted.set_value(std::holds_alternative<api::Written>(written));
      });
  EXPECT_TRUE(deleted.get_future().get());
  EXPECT_EQ(planned, 2);
  EXPECT_EQ(Renew("a", serial), "CERTIFICATE_REVOKED");
  EXPECT_EQ(Count("intent/gateways/"), 0u);
  EXPECT_EQ(Join(RequestFor("a", MakeToken())), "NAME_TAKEN");
  EXPECT_EQ(Join(RequestFor("a", MakeToken("gateways/a"))), "");
}

TEST_F(EnrollmentTest, RevokedHost_GetsNoKeys_AndThoseThatItHasEnd) {
  JoinResponse response;
  ASSERT_EQ(Join(RequestFor("a", MakeToken()), &response), "");
  const std::string serial = identity::FactsOfPem(response.certificate_chain()).value().serial;
  const auto known = KeysFor(serial, identity::Now());
  ASSERT_TRUE(known.has_value());
  ASSERT_EQ(Revoke("gateways/a"), "");
  const auto record = KeyRecord();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->mod_revision, store_->Get("certificates/node/a").value()->mod_revision)
      << "together";
  EXPECT_FALSE(KeysFor(serial, identity::Now()).has_value());
  const auto later =
      schedule_.At(identity::Now() + std::chrono::minutes(4), identity::StartsOfKeys(record));
  for (const std::string& key : known->keys)
    EXPECT_EQ(std::ranges::find(later.keys, key), later.keys.end());
}

TEST_F(EnrollmentTest, DeletedGateway_RotatesTheKeysInTheSameTransaction) {
  ASSERT_EQ(Join(RequestFor("a", MakeToken())), "");
  api::Writer writer(*store_, *follower_);
  std::promise<bool> deleted;
  writer.Write(
      {.method = "/m"}, store_->Range({}).value().revision,
      [&](const sync::Fleet& fleet) {
        return enrollment_.PlanDelete(fleet, "gateways/a", {}, identity::Now());
      },
      [&](const api::WrittenOrError& written) {
        deleted.set_value(std::holds_alternative<api::Written>(written));
      });
  ASSERT_TRUE(deleted.get_future().get());
  const auto record = KeyRecord();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->mod_revision, store_->Get("certificates/node/a").value()->mod_revision);
}

TEST_F(EnrollmentTest, RotatedByHand_TwiceUnderOneRequestId_IsOneRotation) {
  constexpr char kUuid[] = "123e4567-e89b-12d3-a456-426614174000";
  const auto first = std::get<admin::v1::RotateFleetKeysResponse>(RotateKeys(kUuid));
  EXPECT_LT(first.start_time().seconds(), first.done_time().seconds());
  const auto again = std::get<admin::v1::RotateFleetKeysResponse>(RotateKeys(kUuid));
  EXPECT_EQ(again.SerializeAsString(), first.SerializeAsString());
  EXPECT_EQ(identity::StartsOfKeys(KeyRecord()).size(), 1u);
  EXPECT_EQ(Count("audit/"), 1u);
  // Another one begins when the first has ended, and serves those behind it.
  for (int i = 0; i < 3; ++i) {
    const auto next = std::get<admin::v1::RotateFleetKeysResponse>(RotateKeys({}));
    EXPECT_EQ(next.start_time().seconds(), first.done_time().seconds());
  }
  EXPECT_EQ(identity::StartsOfKeys(KeyRecord()).size(), 2u);
  EXPECT_EQ(Count("audit/"), 4u);
}

TEST_F(EnrollmentTest, RevocationsAtTheSameTime_AllSucceed) {
  constexpr int kHosts = 8;
  std::atomic<int> revoked{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kHosts; ++i) {
    callers.emplace_back(
        [&, i] { revoked += Revoke("gateways/h" + std::to_string(i)).empty() ? 1 : 0; });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(revoked, kHosts);
  EXPECT_LE(identity::StartsOfKeys(KeyRecord()).size(), 2u);
}

TEST_F(EnrollmentTest, TokenForLongerThanADay_IsRefused) {
  for (const std::chrono::seconds lifetime :
       {std::chrono::seconds(-1), std::chrono::seconds(86401)}) {
    std::promise<std::string> reason;
    enrollment_.CreateToken(caller_, {}, lifetime, [&](const auto& outcome) {
      reason.set_value(std::get<api::ApiError>(outcome).violations.front().field);
    });
    EXPECT_EQ(reason.get_future().get(), "lifetime");
  }
  EXPECT_EQ(Count("join/"), 0u);
}

TEST_F(EnrollmentTest, Service_ChecksRequestsAndSaysWhatIsWrong) {
  api::Writer writer(*store_, *follower_);
  const api::Backend backend{*store_, *follower_, writer};
  sync::StatusWriter statuses(*store_);
  sync::NodeHub hub(*follower_, statuses, store_->uuid());
  sync::TunnelHub tunnels;
  const auto revocations = std::move(*identity::Revocations::Start(*store_));
  const identity::FleetKeySchedule keys("secret", std::chrono::hours(24));
  api::NodeService service(enrollment_, {backend, hub, tunnels, *revocations}, keys);
  const std::string socket =
      "unix:" + ::testing::TempDir() + "rocegw-node-" + std::to_string(getpid()) + ".sock";
  grpc::ServerBuilder builder;
  builder.AddListeningPort(socket, grpc::experimental::LocalServerCredentials(UDS));
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const auto channel = grpc::CreateChannel(socket, grpc::experimental::LocalCredentials(UDS));
  const auto stub = fleet::v1::NodeService::NewStub(channel);
  const auto call = [&](const JoinRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    JoinResponse response;
    return stub->Join(&context, request, &response);
  };
  const auto reason = [](const grpc::Status& status) {
    google::rpc::Status details;
    google::rpc::ErrorInfo info;
    if (!details.ParseFromString(status.error_details()) || details.details_size() == 0 ||
        !details.details(0).UnpackTo(&info)) {
      return std::string();
    }
    return info.reason();
  };
  JoinRequest request = RequestFor("a", "rocegw-join-wrong");
  EXPECT_EQ(call(request).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(reason(call(request)), "TOKEN_UNKNOWN");
  request.set_gateway("gateways/A");
  EXPECT_EQ(reason(call(request)), "INVALID_FIELDS");
  request = RequestFor("a", MakeToken());
  request.set_certificate_request("nonsense");
  EXPECT_EQ(call(request).error_message().substr(0, 19), "certificate_request");
  EXPECT_TRUE(call(RequestFor("a", request.token())).ok());
  // The administrator is not a node.
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  fleet::v1::RenewRequest renew;
  renew.set_gateway("gateways/a");
  renew.set_certificate_request("x");
  fleet::v1::RenewResponse renewed;
  EXPECT_EQ(stub->Renew(&context, renew, &renewed).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace rocegw::testing::enrollment
