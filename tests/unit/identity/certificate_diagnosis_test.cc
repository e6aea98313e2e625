// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/certificate_diagnosis.h"

#include <gtest/gtest.h>

namespace rocegw::identity {
namespace {

TEST(DiagnoseCertificate, OverItsLife) {
  using std::chrono::hours;
  const TimePoint begin = Now();
  const TimePoint end = begin + hours(24);
  const auto at = [&](hours after) {
    const auto diagnosis = DiagnoseCertificate("gateways/g", begin, end, begin + after);
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

}  // namespace
}  // namespace rocegw::identity
