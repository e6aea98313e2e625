// SPDX-License-Identifier: Apache-2.0
// rocegwctl doctor over TLS, when the certificates by which controller and caller know each other
// are good, and when each of them is not.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "controlplane/identity/certificate.h"
#include "gateway/disk/durable_file.h"
#include "tests/e2e/controller/controller_host.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing {
namespace {

using std::chrono::seconds;

class DoctorOverTls : public ::testing::Test {
 protected:
  void SetUp() override {
    host_.Start();
    host_.Bind("alice", types::v1::VIEWER);
    Save(host_.MakeUser("alice"));
    own_ = host_.Authority();
  }

  void Save(const Credential& credential) {
    Write("alice.key", credential.key);
    Write("alice.crt", credential.certificate);
    Write("trust.crt", credential.trust);
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(host_.File(name)) << text;
  }

  // Each finding by its check, as "SEVERITY object: found"; the exit status is looked at, too.
  std::map<std::string, std::string> Findings(std::optional<int> exit_status,
                                              const std::string& more = {}) {
    const std::string ctl =
        std::string("ROCEGW_CONFIG=") + host_.File("contexts.yaml") + " " ROCEGWCTL;
    Shell(ctl + " config set-context c --address " + host_.address() + " --ca " +
          host_.File("trust.crt") + " --certificate " + host_.File("alice.crt") + " --key " +
          host_.File("alice.key") + more + " >/dev/null");
    const std::string text = Shell(
        ctl + " --context c doctor -o json 2>" + host_.File("errors") + "; code=$?; " +
        (exit_status ? "test $code -eq " + std::to_string(*exit_status) : std::string("true")));
    std::map<std::string, std::string> found;
    const auto document = nlohmann::json::parse(text, nullptr, false);
    if (document.is_discarded()) return found;
    for (const auto& one : document.at("diagnoses")) {
      const std::string severity = one.at("severity");
      EXPECT_EQ(severity == "OK", one.at("remedy") == "") << one;
      found[one.at("check")] =
          severity + " " + std::string(one.at("object")) + ": " + std::string(one.at("found"));
    }
    return found;
  }
  static void Begins(const std::string& text, const std::string& with) {
    EXPECT_EQ(text.substr(0, with.size()), with) << text;
  }

  ControllerHost host_;
  std::unique_ptr<identity::CertificateAuthority> own_;
};

TEST_F(DoctorOverTls, AllGood) {
  auto found = Findings(0);
  Begins(found["controller_certificate"], "OK controller: good until ");
  Begins(found["authority"], "OK fleet: good until ");
  Begins(found["client_certificate"], "OK user/alice: good until ");
  EXPECT_FALSE(found.contains("controller"));
}

TEST_F(DoctorOverTls, AtTheControllersSocket_WhatLiesBesideIt) {
  const std::string text =
      Shell(std::string(ROCEGWCTL) + " --controller unix:" + host_.State("admin.sock") +
            " doctor -o wide");
  EXPECT_NE(text.find("controller_certificate"), std::string::npos) << text;
  EXPECT_NE(text.find("authority"), std::string::npos) << text;
  EXPECT_EQ(text.find("client_certificate"), std::string::npos) << text;
}

TEST_F(DoctorOverTls, OwnCertificate_HasEnded) {
  auto key = identity::NewKey();
  Save({.key = identity::KeyToPem(**key).value(),
        .certificate =
            own_->IssueUser(**key, "alice", seconds(-1), identity::NewSerial(identity::Now()))
                .value()
                .pem,
        .trust = host_.trust()});
  auto found = Findings(10);
  Begins(found["client_certificate"], "FAIL user/alice: ended ");
  Begins(found["controller"], "FAIL controller: ");
  Begins(found["controller_certificate"], "OK ");
}

TEST_F(DoctorOverTls, OwnCertificate_EndsSoon) {
  auto key = identity::NewKey();
  const auto then = identity::Now();
  Save({.key = identity::KeyToPem(**key).value(),
        .certificate =
            own_->IssueUser(**key, "alice", seconds(12), identity::NewSerial(then)).value().pem,
        .trust = host_.trust()});
  // A quarter of its life is left for three seconds.
  std::map<std::string, std::string> found;
  while (!found["client_certificate"].starts_with("WARN")) {
    ASSERT_LT(identity::Now(), then + seconds(12));
    found = Findings({});
  }
  Begins(found["client_certificate"], "WARN user/alice: good until ");
}

TEST_F(DoctorOverTls, ControllersCertificate_HasEnded) {
  auto key = identity::KeyFromPem(*ReadSmallFile(host_.State("server.key")));
  const auto issued =
      own_->IssueServer(**key, {"127.0.0.1"}, seconds(-1), identity::NewSerial(identity::Now()));
  ASSERT_TRUE(WriteDurably(host_.State("server.crt"), issued.value().pem, 0644).ok());
  // gRPC takes it up within a second or so.
  std::map<std::string, std::string> found;
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  // The question about the certificate may see the new one when the call before saw the old one.
  while (!found["controller_certificate"].starts_with("FAIL") ||
         !found["controller"].starts_with("FAIL")) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    found = Findings({});
  }
  Begins(found["controller_certificate"], "FAIL controller: ended ");
  Begins(found["authority"], "OK ");
  Begins(found["controller"], "FAIL controller: ");
}

TEST_F(DoctorOverTls, ControllersCertificate_IsForOtherNames) {
  auto found = Findings(10, " --server-name elsewhere.example");
  Begins(found["controller_certificate"], "FAIL controller: is for controller.rocegw, ");
  EXPECT_NE(found["controller_certificate"].find("not for elsewhere.example"), std::string::npos);
}

TEST_F(DoctorOverTls, AuthorityIsAnother) {
  const ScratchDirectory elsewhere;
  const auto foreign = identity::CertificateAuthority::Open(elsewhere.File(""), "rocegw");
  Write("trust.crt", foreign.value()->bundle());
  Begins(Findings(10)["authority"], "FAIL fleet: none in " + host_.File("trust.crt") + " made ");
  // Behind it the right one, as while one takes over from the other.
  Write("trust.crt", foreign.value()->bundle() + host_.trust());
  Begins(Findings(0)["authority"], "OK fleet: good until ");
}

TEST_F(DoctorOverTls, NobodyThere_IsSaidAsEver) {
  host_.Stop();
  EXPECT_TRUE(Findings(6).empty());
  EXPECT_NE(ReadSmallFile(host_.File("errors"))->find(host_.address()), std::string::npos);
}

}  // namespace
}  // namespace rocegw::testing
