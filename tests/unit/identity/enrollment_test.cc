// SPDX-License-Identifier: Apache-2.0
// Joining, renewal and revocation as plans, executed on a store in memory.
#include "controlplane/identity/enrollment.h"

#include <gtest/gtest.h>

#include "controlplane/identity/join_token.h"
#include "controlplane/store/local/memory_store.h"
#include "rocegw/controlplane/v1/records.pb.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::identity {
namespace {

using rocegw::testing::ScratchDirectory;
using std::chrono::hours;
using std::chrono::seconds;

class EnrollmentTest : public ::testing::Test {
 protected:
  static std::string Request(EVP_PKEY& key) { return NewCertificateRequest(key).value(); }
  Found Get(const std::string& key) { return *store_->Get(key); }
  bool Commit(const Step& step) {
    return store_->Txn({.compares = step.compares, .then = step.operations, .otherwise = {}})
        .value()
        .succeeded;
  }
  std::string MakeToken(const std::string& gateway = {}, seconds lifetime = hours(1)) {
    const NewJoinToken token = MakeJoinToken(gateway, lifetime, "local:admin", now_);
    EXPECT_TRUE(Commit({.compares = {}, .operations = {token.put}}));
    return token.token;
  }
  EnrolledOrRefusal Plan(const std::string& gateway, const std::string& token, EVP_PKEY& key) {
    return PlanJoin(
        *authority_,
        {.gateway = "gateways/" + gateway, .token = token, .certificate_request = Request(key)},
        Get(JoinTokenKey(token)), Get(CertificateKey("node/" + gateway)), hours(24), now_);
  }
  // Returns the serial of the new certificate, or the reason of the refusal.
  std::string Join(const std::string& gateway, const std::string& token, EVP_PKEY& key) {
    const auto outcome = Plan(gateway, token, key);
    if (const auto* refusal = std::get_if<Refusal>(&outcome)) return refusal->reason;
    EXPECT_TRUE(Commit(std::get<Enrolled>(outcome).step));
    return std::get<Enrolled>(outcome).serial;
  }
  std::string Renew(const std::string& gateway, const std::string& serial, EVP_PKEY& key) {
    const auto outcome = PlanRenew(*authority_, "gateways/" + gateway, Request(key), serial,
                                   Get(CertificateKey("node/" + gateway)), hours(24), now_);
    if (const auto* refusal = std::get_if<Refusal>(&outcome)) return refusal->reason;
    EXPECT_TRUE(Commit(std::get<Enrolled>(outcome).step));
    return std::get<Enrolled>(outcome).serial;
  }
  // Joins by the token of a pod on the Kubernetes node.
  std::string PodJoin(const std::string& gateway, const std::string& node) {
    const auto outcome = PlanPodJoin(
        *authority_,
        {.gateway = "gateways/" + gateway, .node = node, .certificate_request = Request(*key_)},
        Get(CertificateKey("node/" + gateway)), hours(24), now_);
    if (const auto* refusal = std::get_if<Refusal>(&outcome)) return refusal->reason;
    EXPECT_TRUE(Commit(std::get<Enrolled>(outcome).step));
    return std::get<Enrolled>(outcome).serial;
  }
  void Revoke(const std::string& gateway, Rejoin rejoin = Rejoin::kAllowed) {
    EXPECT_TRUE(Commit(
        PlanRevoke("node/" + gateway, Get(CertificateKey("node/" + gateway)), now_, rejoin)));
  }
  bool Use(const std::string& gateway, const std::string& serial) {
    const auto step =
        PlanFirstUse("node/" + gateway, serial, Get(CertificateKey("node/" + gateway)));
    return step.has_value() && Commit(*step);
  }
  bool IsGood(const std::string& gateway, const std::string& serial) {
    const Found found = Get(CertificateKey("node/" + gateway));
    controlplane::v1::CertificateRecord record;
    if (found.has_value()) record.ParseFromString(found->value);
    return serial >= record.least_serial();
  }

  ScratchDirectory directory_;
  std::unique_ptr<CertificateAuthority> authority_ =
      std::move(*CertificateAuthority::Open(directory_.File(""), "example"));
  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  TimePoint now_ = Now();
  Key key_ = std::move(*NewKey());
  Key other_key_ = std::move(*NewKey());
};

TEST_F(EnrollmentTest, Join_GivesACertificateForTheKeyAndTakesTheToken) {
  const std::string token = MakeToken();
  const auto outcome = Plan("a", token, *key_);
  const auto& enrolled = std::get<Enrolled>(outcome);
  EXPECT_TRUE(Commit(enrolled.step));
  const auto facts = FactsOfPem(enrolled.certificate_chain);
  EXPECT_EQ(facts.value().uri, "spiffe://example/node/a");
  EXPECT_EQ(facts.value().serial, enrolled.serial);
  const auto certificate = CertificateFromPem(enrolled.certificate_chain);
  EXPECT_EQ(DigestOfKey(*X509_get0_pubkey(certificate.value().get())), DigestOfKey(*key_));
  EXPECT_EQ(Join("b", token, *key_), "TOKEN_USED");
  EXPECT_EQ(Join("a", token, *other_key_), "TOKEN_USED");
}

TEST_F(EnrollmentTest, Token_IsNowhereInTheStore) {
  const std::string token = MakeToken();
  Join("a", token, *key_);
  const auto all = store_->Range({});
  for (const auto& entry : all.value().entries) {
    EXPECT_EQ(entry.key.find(token), std::string::npos);
    EXPECT_EQ(entry.value.find(token), std::string::npos);
  }
}

TEST_F(EnrollmentTest, Join_WithATokenThatIsNotGood_IsRefused) {
  EXPECT_EQ(Join("a", "rocegw-join-none", *key_), "TOKEN_UNKNOWN");
  EXPECT_EQ(Join("a", "", *key_), "TOKEN_UNKNOWN");
  const std::string bound = MakeToken("gateways/a");
  EXPECT_EQ(Join("b", bound, *key_), "TOKEN_FOR_ANOTHER");
  const std::string brief = MakeToken({}, seconds(10));
  now_ += seconds(10);
  EXPECT_EQ(Join("a", brief, *key_), "TOKEN_EXPIRED");
  EXPECT_EQ(Join("a", bound, *key_).size(), 38u);
}

TEST_F(EnrollmentTest, Join_OfTwoWithOneToken_LetsOneIn) {
  const std::string token = MakeToken();
  const auto first = Plan("a", token, *key_);
  const auto second = Plan("b", token, *other_key_);
  EXPECT_TRUE(Commit(std::get<Enrolled>(first).step));
  EXPECT_FALSE(Commit(std::get<Enrolled>(second).step));
}

TEST_F(EnrollmentTest, Join_WhoseAnswerWasLost_MayBeAskedAgainUntilItWasSeen) {
  const std::string token = MakeToken();
  Join("a", token, *key_);
  const std::string second = Join("a", token, *key_);
  ASSERT_EQ(second.size(), 38u);
  EXPECT_TRUE(IsGood("a", second));
  EXPECT_TRUE(Use("a", second));
  EXPECT_EQ(Join("a", token, *key_), "TOKEN_USED");
}

TEST_F(EnrollmentTest, Join_UnderANameThatWasThere_NeedsATokenForIt) {
  const std::string first = Join("a", MakeToken(), *key_);
  Use("a", first);
  EXPECT_EQ(Join("a", MakeToken(), *other_key_), "NAME_TAKEN");
  const std::string second = Join("a", MakeToken("gateways/a"), *other_key_);
  ASSERT_EQ(second.size(), 38u);
  EXPECT_TRUE(IsGood("a", first)) << "until the new one is there";
  EXPECT_TRUE(Use("a", second));
  EXPECT_FALSE(IsGood("a", first));
}

TEST_F(EnrollmentTest, BadRequest_NamesTheField_AndLeavesTheToken) {
  const std::string token = MakeToken();
  const auto outcome = PlanJoin(
      *authority_, {.gateway = "gateways/a", .token = token, .certificate_request = "nonsense"},
      Get(JoinTokenKey(token)), {}, hours(24), now_);
  const auto& refusal = std::get<Refusal>(outcome);
  EXPECT_EQ(refusal.kind, Refusal::Kind::kInvalid);
  EXPECT_EQ(refusal.field, "certificate_request");
  EXPECT_EQ(Join("a", token, *key_).size(), 38u);
}

TEST_F(EnrollmentTest, Renewal_KeepsTheOldOneUntilTheNewOneWasSeen) {
  const std::string first = Join("a", MakeToken(), *key_);
  const std::string lost = Renew("a", first, *key_);
  const std::string second = Renew("a", first, *other_key_);
  EXPECT_LT(first, lost);
  EXPECT_LT(lost, second) << "also within the same microsecond";
  EXPECT_TRUE(IsGood("a", first));
  EXPECT_TRUE(IsGood("a", second));
  EXPECT_FALSE(Use("a", first));
  EXPECT_FALSE(Use("a", ""));
  EXPECT_TRUE(Use("a", second));
  EXPECT_FALSE(Use("a", second)) << "once";
  EXPECT_FALSE(IsGood("a", first));
  EXPECT_EQ(Renew("a", first, *key_), "CERTIFICATE_REVOKED");
  EXPECT_EQ(Renew("a", second, *key_).size(), 38u);
}

TEST_F(EnrollmentTest, Revoked_NothingIssuedBeforeIsGood_AndTheNextIs) {
  const std::string token = MakeToken();
  const std::string first = Join("a", token, *key_);
  const std::string second = Renew("a", first, *key_);
  Revoke("a");
  EXPECT_FALSE(IsGood("a", first));
  EXPECT_FALSE(IsGood("a", second));
  EXPECT_FALSE(Use("a", second));
  EXPECT_EQ(Renew("a", second, *key_), "CERTIFICATE_REVOKED");
  EXPECT_EQ(Join("a", token, *key_), "TOKEN_USED") << "its token does not let it in again";
  EXPECT_EQ(Join("a", MakeToken(), *key_), "NAME_TAKEN");
  now_ -= hours(1);  // a controller whose clock is behind
  const std::string third = Join("a", MakeToken("gateways/a"), *key_);
  EXPECT_TRUE(IsGood("a", third));
  EXPECT_FALSE(IsGood("a", second));
  EXPECT_EQ(Join("a", token, *key_), "TOKEN_USED") << "not even now";
  EXPECT_TRUE(IsGood("b", first)) << "others are not concerned";
}

// A controller with an empty store and the same authority: no host is locked out.
TEST_F(EnrollmentTest, Renewal_WithoutARecord_IsGranted) {
  const std::string first = Join("a", MakeToken(), *key_);
  store_ = store::NewMemoryStore();
  EXPECT_TRUE(IsGood("a", first));
  EXPECT_EQ(Renew("a", first, *key_).size(), 38u);
}

TEST_F(EnrollmentTest, PodJoin_TakesTheNameThatTheNodesNameBeginsWith) {
  EXPECT_EQ(PodJoin("a", "b.example"), "OTHER_NODE");
  EXPECT_EQ(PodJoin("a", "ab"), "OTHER_NODE");
  EXPECT_EQ(PodJoin("a", "a.example").size(), 38u);
  EXPECT_EQ(PodJoin("b", "b").size(), 38u);
}

TEST_F(EnrollmentTest, PodJoin_OfTheSameNodeAgain_EndsTheEarlierCertificate) {
  const std::string first = PodJoin("a", "a.example");
  const std::string second = PodJoin("a", "a.example");
  EXPECT_TRUE(IsGood("a", first)) << "until the new one is used";
  EXPECT_TRUE(Use("a", second));
  EXPECT_FALSE(IsGood("a", first));
}

TEST_F(EnrollmentTest, PodJoin_OfANameThatAnotherHas_IsRefused) {
  PodJoin("a", "a.example");
  EXPECT_EQ(PodJoin("a", "a.other"), "NAME_TAKEN");
  Join("b", MakeToken(), *key_);
  EXPECT_EQ(PodJoin("b", "b.example"), "NAME_TAKEN") << "it joined by a join token";
}

TEST_F(EnrollmentTest, PodJoin_AfterARevocation_TakesAJoinToken_AfterADeletionNot) {
  PodJoin("a", "a.example");
  Revoke("a", Rejoin::kAllowed);
  EXPECT_EQ(PodJoin("a", "a.example").size(), 38u);
  Revoke("a", Rejoin::kByJoinToken);
  EXPECT_EQ(PodJoin("a", "a.example"), "NODE_REVOKED");
  Revoke("a", Rejoin::kAllowed);
  EXPECT_EQ(PodJoin("a", "a.example"), "NODE_REVOKED") << "a later deletion does not admit it";
  EXPECT_EQ(Join("a", MakeToken("gateways/a"), *key_).size(), 38u);
  EXPECT_EQ(PodJoin("a", "a.example"), "NAME_TAKEN");
}

TEST(JoinFile, IsReadAsWritten) {
  const ScratchDirectory directory;
  const auto authority = CertificateAuthority::Open(directory.File(""), "example");
  const JoinFile file{.controllers = {"192.0.2.1:7471", "[2001:db8::1]:7471"},
                      .server_name = "controller.example",
                      .gateway = "gateways/a",
                      .token = "rocegw-join-0123",
                      .expires = "2026-11-21T15:00:00Z",
                      .trust_bundle = authority.value()->bundle()};
  const auto read = ReadJoinFile(WriteJoinFile(file));
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read.value().controllers, file.controllers);
  EXPECT_EQ(read.value().server_name, file.server_name);
  EXPECT_EQ(read.value().gateway, file.gateway);
  EXPECT_EQ(read.value().token, file.token);
  EXPECT_EQ(read.value().trust_bundle, file.trust_bundle);
  for (const char* bad : {"", "[", "a: b", "token: x", "controllers: []"}) {
    EXPECT_FALSE(ReadJoinFile(bad).ok()) << bad;
  }
  JoinFile broken = file;
  broken.trust_bundle = "nonsense\n";
  EXPECT_NE(ReadJoinFile(WriteJoinFile(broken)).status().text().find("trust_bundle"),
            std::string::npos);
  broken = file;
  broken.controllers.clear();
  EXPECT_FALSE(ReadJoinFile(WriteJoinFile(broken)).ok());
}

}  // namespace
}  // namespace rocegw::identity
