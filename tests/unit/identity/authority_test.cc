// SPDX-License-Identifier: Apache-2.0
// The certificate authority and the controller's certificate, in real files.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "controlplane/identity/certificate_authority.h"
#include "controlplane/identity/server_certificate.h"
#include "gateway/disk/durable_file.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::identity {
namespace {

using rocegw::testing::ScratchDirectory;
using std::chrono::hours;
using std::chrono::seconds;

constexpr char kDomain[] = "example";

class AuthorityTest : public ::testing::Test {
 protected:
  std::unique_ptr<CertificateAuthority> Open() {
    auto authority = CertificateAuthority::Open(directory_.File(""), kDomain);
    EXPECT_TRUE(authority.ok()) << authority.status().text();
    return authority.ok() ? std::move(*authority) : nullptr;
  }
  std::string WhyNot(const std::string& domain = kDomain) {
    return CertificateAuthority::Open(directory_.File(""), domain).status().text();
  }
  mode_t ModeOf(const std::string& name) {
    struct stat info {};
    EXPECT_EQ(stat(directory_.File(name).c_str(), &info), 0) << name;
    return info.st_mode & 0777;
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.File(name)) << text;
  }
  std::string Read(const std::string& name) { return *ReadSmallFile(directory_.File(name)); }

  ScratchDirectory directory_;
};

TEST_F(AuthorityTest, FirstOpen_MakesFilesThatOnlyWeMayRead_SecondOneFindsThem) {
  const auto first = Open();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(ModeOf("ca.key"), 0600u);
  EXPECT_EQ(ModeOf("ca.crt"), 0644u);
  EXPECT_GT(first->not_after(), Now() + hours(24 * 3650));
  const auto second = Open();
  EXPECT_EQ(second->fingerprint(), first->fingerprint());
  EXPECT_EQ(second->bundle(), first->bundle());
}

TEST_F(AuthorityTest, KeyWithoutCertificate_SignsItselfAgain_AndKnowsWhatItIssued) {
  const auto first = Open();
  auto key = NewKey();
  const auto issued = first->IssueNode(*key.value(), "a", hours(24), NewSerial(Now()));
  ASSERT_EQ(unlink(directory_.File("ca.crt").c_str()), 0);
  const auto second = Open();
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(second->Signed(**CertificateFromPem(issued.value().pem)));
}

TEST_F(AuthorityTest, WhatIsWrongWithTheFiles_IsSaidWithTheRemedy) {
  Open();
  const std::string key = Read("ca.key");
  const std::string certificate = Read("ca.crt");
  EXPECT_NE(WhyNot("other").find("set trust_domain"), std::string::npos) << WhyNot("other");
  ASSERT_EQ(unlink(directory_.File("ca.key").c_str()), 0);
  EXPECT_NE(WhyNot().find("restore it from the backup"), std::string::npos) << WhyNot();
  Write("ca.key", "nonsense");
  EXPECT_NE(WhyNot().find("ca.key: not a private key"), std::string::npos) << WhyNot();
  Write("ca.key", KeyToPem(**NewKey()).value());
  EXPECT_NE(WhyNot().find("does not belong to"), std::string::npos) << WhyNot();
  Write("ca.key", key);
  Write("ca.crt", "nonsense");
  EXPECT_NE(WhyNot().find("ca.crt: not a certificate"), std::string::npos) << WhyNot();
  // A leaf certificate instead of an authority.
  Write("ca.crt", certificate);
  const auto authority = Open();
  auto own_key = KeyFromPem(key);
  Write("ca.crt", authority->IssueNode(**own_key, "a", hours(1), NewSerial(Now())).value().pem);
  EXPECT_NE(WhyNot().find("is not an authority's"), std::string::npos) << WhyNot();
}

TEST_F(AuthorityTest, Bundle_MayHoldAnotherAuthorityThatIsTrustedToo) {
  const auto own = Open();
  const ScratchDirectory elsewhere;
  const auto other = CertificateAuthority::Open(elsewhere.File(""), "other");
  Write("ca.crt", own->bundle() + other.value()->bundle());
  const auto both = Open();
  EXPECT_EQ(both->fingerprint(), own->fingerprint());
  EXPECT_TRUE(both->Trusts(own->fingerprint()));
  EXPECT_TRUE(both->Trusts(other.value()->fingerprint()));
  EXPECT_FALSE(own->Trusts(other.value()->fingerprint()));
}

TEST_F(AuthorityTest, NodeCertificate_SaysWhoAndForHowLongAndNothingElse) {
  const auto authority = Open();
  auto key = NewKey();
  const std::string serial = NewSerial(Now());
  const auto issued = authority->IssueNode(**key, "host-a", hours(24), serial);
  ASSERT_TRUE(issued.ok()) << issued.status().text();
  auto facts = FactsOfPem(issued.value().pem);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts.value().uri, "spiffe://example/node/host-a");
  EXPECT_EQ(facts.value().serial, serial);
  EXPECT_TRUE(facts.value().names.empty());
  EXPECT_LE(facts.value().not_before, Now() - seconds(60));
  EXPECT_LE(facts.value().not_after, Now() + hours(24));
  EXPECT_GT(facts.value().not_after, Now() + hours(23));
  auto certificate = CertificateFromPem(issued.value().pem);
  EXPECT_TRUE(authority->Signed(**certificate));
  EXPECT_EQ(X509_check_ca(certificate.value().get()), 0) << "it signs nothing";
  EXPECT_EQ(X509_check_purpose(certificate.value().get(), X509_PURPOSE_SSL_CLIENT, 0), 1);
  EXPECT_EQ(X509_check_purpose(certificate.value().get(), X509_PURPOSE_SSL_SERVER, 0), 0)
      << "a node cannot pass for a controller";
}

TEST_F(AuthorityTest, Names_ThatAreNone_AreRefused) {
  const auto authority = Open();
  auto key = NewKey();
  for (const char* name : {"", "A", "a/b", "a.b", "-a", "a,URI:spiffe://example/user/root"}) {
    EXPECT_FALSE(authority->IssueNode(**key, name, hours(1), NewSerial(Now())).ok()) << name;
    EXPECT_FALSE(authority->IssueUser(**key, name, hours(1), NewSerial(Now())).ok()) << name;
  }
  EXPECT_TRUE(authority->IssueNode(**key, std::string(63, 'a'), hours(1), NewSerial(Now())).ok());
}

TEST_F(AuthorityTest, NothingIsIssuedForLongerThanTheAuthorityLasts) {
  const auto authority = Open();
  auto key = NewKey();
  const auto issued = authority->IssueUser(**key, "u", hours(24 * 36500), NewSerial(Now()));
  EXPECT_EQ(issued.value().not_after, authority->not_after());
}

TEST_F(AuthorityTest, Request_GivesItsPublicKeyOnlyWhenSignedByIt) {
  auto key = NewKey();
  const std::string request = NewCertificateRequest(**key).value();
  auto found = PublicKeyOfRequest(request);
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(DigestOfKey(*found.value()), DigestOfKey(**key));

  EXPECT_FALSE(PublicKeyOfRequest("").ok());
  EXPECT_FALSE(PublicKeyOfRequest("nonsense").ok());
  EXPECT_FALSE(PublicKeyOfRequest(request.substr(0, request.size() / 2)).ok());
  EXPECT_FALSE(PublicKeyOfRequest(KeyToPem(**key).value()).ok()) << "a key is no request";
  // Every change of a single character is detected.
  size_t refused = 0;
  const size_t begin = request.find('\n') + 1;
  const size_t end = request.rfind("\n-----END");
  for (size_t at = begin; at < end; ++at) {
    if (request[at] == '\n' || request[at] == '=') continue;
    std::string changed = request;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    const auto other = PublicKeyOfRequest(changed);
    // The last character before the padding has bits without a meaning.
    refused += other.ok() ? 0 : 1;
    if (other.ok()) {
      EXPECT_GE(at + 4, end) << changed;
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST_F(AuthorityTest, Request_WithAWeakKey_IsRefusedInWords) {
  const Key rsa(EVP_RSA_gen(1024));
  const Key curve(EVP_EC_gen("secp256k1"));
  const Key good(EVP_RSA_gen(2048));
  EXPECT_NE(
      PublicKeyOfRequest(NewCertificateRequest(*rsa).value()).status().text().find("1024 bits"),
      std::string::npos);
  EXPECT_NE(PublicKeyOfRequest(NewCertificateRequest(*curve).value())
                .status()
                .text()
                .find("not accepted"),
            std::string::npos);
  EXPECT_TRUE(PublicKeyOfRequest(NewCertificateRequest(*good).value()).ok());
}

TEST(Serial, GrowsWithTimeAndIsNotGuessed) {
  const TimePoint now = Now();
  EXPECT_EQ(NewSerial(now).size(), 38u);
  EXPECT_EQ(TimeOfSerial(NewSerial(now)), now);
  EXPECT_NE(NewSerial(now), NewSerial(now));
  EXPECT_LT(NewSerial(now), LeastSerial(now + std::chrono::microseconds(1)));
  EXPECT_LE(LeastSerial(now), NewSerial(now));
  EXPECT_EQ(TimeOfSerial(""), TimePoint());
}

class ServerCertificateTest : public AuthorityTest {
 protected:
  ServerCertificate Make(std::vector<std::string> names, seconds lifetime = hours(24 * 90)) {
    return {*authority_, directory_.File("").substr(0, directory_.File("").size() - 1),
            std::move(names), lifetime};
  }
  std::unique_ptr<CertificateAuthority> authority_ = Open();
};

TEST_F(ServerCertificateTest, Renew_IssuesOnceAndAgainOnlyForAReason) {
  ServerCertificate server = Make({"host.example", "192.0.2.1", "2001:db8::1"});
  EXPECT_TRUE(*server.Renew());
  EXPECT_EQ(ModeOf("server.key"), 0600u);
  const std::string first = Read("server.crt");
  auto facts = FactsOfPem(first);
  EXPECT_EQ(facts.value().uri, "spiffe://example/controller");
  for (const char* name : {"controller.example", "host.example", "192.0.2.1", "2001:db8::1",
                           "localhost", "127.0.0.1", "::1"}) {
    EXPECT_EQ(std::ranges::count(facts.value().names, name), 1) << name;
  }
  EXPECT_FALSE(*server.Renew());
  EXPECT_EQ(Read("server.crt"), first);
  EXPECT_EQ(server.not_after(), facts.value().not_after);
  EXPECT_LT(server.renew_at(), Now() + hours(24 * 46));

  ServerCertificate fewer = Make({"host.example"});
  EXPECT_FALSE(*fewer.Renew()) << "it has all names";
  ServerCertificate more = Make({"other.example"});
  EXPECT_TRUE(*more.Renew());
  const std::string key = Read("server.key");
  // Half of its life is over at once.
  ServerCertificate brief = Make({}, seconds(0));
  ASSERT_EQ(unlink(directory_.File("server.crt").c_str()), 0);
  EXPECT_TRUE(*brief.Renew());
  EXPECT_TRUE(*brief.Renew());
  EXPECT_EQ(Read("server.key"), key) << "the key stays";
  Write("server.crt", "nonsense");
  EXPECT_TRUE(*brief.Renew());
}

TEST_F(ServerCertificateTest, AnotherAuthority_MeansANewCertificate) {
  ServerCertificate before = Make({});
  EXPECT_TRUE(*before.Renew());
  unlink(directory_.File("ca.key").c_str());
  unlink(directory_.File("ca.crt").c_str());
  authority_ = Open();
  ServerCertificate after = Make({});
  EXPECT_TRUE(*after.Renew());
  EXPECT_TRUE(authority_->Signed(**CertificateFromPem(Read("server.crt"))));
}

}  // namespace
}  // namespace rocegw::identity
