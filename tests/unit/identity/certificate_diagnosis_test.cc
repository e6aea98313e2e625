// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/certificate_diagnosis.h"

#include <gtest/gtest.h>

#include <map>

#include "controlplane/identity/certificate_authority.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::identity {
namespace {

using gateway::v1::Diagnosis;
using gateway::v1::FAIL;
using gateway::v1::OK;
using gateway::v1::WARN;
using rocegw::testing::ScratchDirectory;
using std::chrono::hours;

constexpr hours kDay{24};

TEST(DiagnoseCertificate, OverItsLife) {
  const TimePoint begin = Now();
  const TimePoint end = begin + hours(24);
  const auto at = [&](hours after) {
    auto diagnosis = DiagnoseCertificate("gateways/g", begin, end, begin + after);
    EXPECT_EQ(diagnosis.object(), "gateways/g");
    EXPECT_EQ(diagnosis.remedy().empty(), diagnosis.severity() == gateway::v1::OK);
    return diagnosis;
  };
  EXPECT_EQ(at(hours(-1)).severity(), gateway::v1::FAIL) << "not yet valid";
  EXPECT_EQ(at(hours(0)).severity(), gateway::v1::OK);
  EXPECT_EQ(at(hours(18)).severity(), gateway::v1::OK);
  EXPECT_EQ(at(hours(19)).severity(), gateway::v1::WARN) << "a quarter is left";
  EXPECT_EQ(at(hours(24)).severity(), gateway::v1::FAIL);
  EXPECT_NE(at(hours(30)).found().find("ended"), std::string::npos);
}

// A controller whose certificate is for "ctl.example" and 192.0.2.1, and a caller, for 100 days.
class DiagnoseCallerTest : public ::testing::Test {
 protected:
  DiagnoseCallerTest() {
    auto key = NewKey();
    const std::string serial = NewSerial(now_);
    const auto issued =
        authority_->IssueServer(**key, {"ctl.example", "192.0.2.1"}, 100 * kDay, serial);
    server_ = std::move(*CertificateFromPem(issued.value().pem));
    view_.server = server_.get();
    view_.host = "ctl.example";
    view_.trusted = std::move(*CertificatesFromPem(authority_->bundle()));
    view_.trusted_file = "ca.crt";
    view_.needs_own = true;
    view_.own = *FactsOfPem(authority_->IssueUser(**key, "alice", 100 * kDay, serial).value().pem);
  }

  static std::unique_ptr<CertificateAuthority> NewAuthority(const ScratchDirectory& directory) {
    return std::move(*CertificateAuthority::Open(directory.File(""), "example"));
  }

  // Returns the findings by check.
  std::map<std::string, Diagnosis> After(hours time) {
    std::map<std::string, Diagnosis> found;
    for (Diagnosis& one : DiagnoseCaller(view_, now_ + time)) {
      EXPECT_EQ(one.remedy().empty(), one.severity() == OK) << one.ShortDebugString();
      found[one.check()] = one;
    }
    return found;
  }

  const ScratchDirectory directory_;
  const std::unique_ptr<CertificateAuthority> authority_ = NewAuthority(directory_);
  const TimePoint now_ = Now();
  X509Certificate server_;
  CallerView view_;
};

TEST_F(DiagnoseCallerTest, OverTheirLives) {
  for (const auto& [days, expected] :
       {std::pair(0, OK), std::pair(74, OK), std::pair(76, WARN), std::pair(101, FAIL)}) {
    auto found = After(days * kDay);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found["controller_certificate"].severity(), expected) << days;
    EXPECT_EQ(found["client_certificate"].severity(), expected) << days;
    EXPECT_EQ(found["authority"].severity(), OK) << days;
  }
  EXPECT_EQ(After(-kDay)["controller_certificate"].severity(), FAIL) << "not yet valid";
  EXPECT_EQ(After(kDay)["client_certificate"].object(), "user/alice");
}

TEST_F(DiagnoseCallerTest, AuthorityNeedsAYear) {
  const auto until_end = std::chrono::duration_cast<hours>(authority_->not_after() - now_);
  EXPECT_EQ(After(until_end - 366 * kDay)["authority"].severity(), OK);
  EXPECT_EQ(After(until_end - 364 * kDay)["authority"].severity(), WARN);
  EXPECT_EQ(After(until_end + kDay)["authority"].severity(), FAIL);
}

TEST_F(DiagnoseCallerTest, NamesAndAddresses) {
  for (const auto& [host, expected] :
       {std::pair("ctl.example", OK), std::pair("192.0.2.1", OK),
        std::pair("controller.example", OK), std::pair("192.0.2.2", FAIL),
        std::pair("other.example", FAIL), std::pair("", OK)}) {
    view_.host = host;
    EXPECT_EQ(After(kDay)["controller_certificate"].severity(), expected) << host;
  }
}

TEST_F(DiagnoseCallerTest, AnotherAuthority_IsNotTaken_ButMayStandBesideTheRightOne) {
  const ScratchDirectory elsewhere;
  const auto other = NewAuthority(elsewhere);
  view_.trusted = std::move(*CertificatesFromPem(other->bundle()));
  EXPECT_EQ(After(kDay)["authority"].severity(), FAIL);
  view_.trusted = std::move(*CertificatesFromPem(other->bundle() + authority_->bundle()));
  EXPECT_EQ(After(kDay)["authority"].severity(), OK);
  view_.trusted.clear();
  EXPECT_EQ(After(kDay)["authority"].severity(), FAIL);
}

TEST_F(DiagnoseCallerTest, WhatIsNotKnownIsNotJudged_WhatIsMissingIs) {
  view_.server = nullptr;
  view_.own.reset();
  auto found = After(kDay);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found["client_certificate"].severity(), FAIL);
  view_.needs_own = false;
  EXPECT_TRUE(After(kDay).empty());
}

}  // namespace
}  // namespace rocegw::identity
