// SPDX-License-Identifier: Apache-2.0
// Answers of a gateway that is in other hands.
#include "controlplane/cli/client/foreign_strings.h"

#include <gtest/gtest.h>

#include <string>

#include "controlplane/cli/views/debug_views.h"
#include "controlplane/cli/views/doctor_view.h"
#include "controlplane/cli/views/state_views.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::cli {
namespace {

constexpr char kClipboard[] = "a\x1b]52;c;cm0gLXJm\a";
constexpr char kForged[] = "a\n    remedy: rm -rf /";

bool HasControl(const std::string& text) {
  return text.find_first_of("\x1b\a\r") != std::string::npos;
}

TEST(ForeignStrings, AreClean_InFieldsListsMapsAndMessages) {
  fleet::v1::Heartbeat message;
  message.set_gateway_version(kClipboard);
  message.add_addresses("192.0.2.1");
  message.add_addresses(kClipboard);
  (*message.mutable_take_overs()->mutable_refusals())[kClipboard] = 3;
  message.mutable_drain()->add_holders(kClipboard);
  CleanStrings(message);
  EXPECT_EQ(message.gateway_version(), "a\\x1b]52;c;cm0gLXJm\\x07");
  EXPECT_EQ(message.addresses(0), "192.0.2.1");
  EXPECT_FALSE(HasControl(message.addresses(1)));
  EXPECT_FALSE(HasControl(message.drain().holders(0)));
  ASSERT_EQ(message.take_overs().refusals().size(), 1u);
  EXPECT_FALSE(HasControl(message.take_overs().refusals().begin()->first));
  EXPECT_EQ(message.take_overs().refusals().begin()->second, 3u);
}

TEST(ForeignStrings, TextOfSeveralLines_KeepsThem) {
  fleet::v1::Heartbeat message;
  message.set_gateway_version("-----BEGIN\n\tX\n");
  CleanStrings(message);
  EXPECT_EQ(message.gateway_version(), "-----BEGIN\n\tX\n");
}

TEST(ForeignStrings, ViewsOfOneLine_CannotBeGivenAnother) {
  gateway::v1::ExplainResponse explanation;
  explanation.add_findings()->set_object(kForged);
  explanation.mutable_findings(0)->set_reason(kForged);
  EXPECT_EQ(ExplanationView(explanation, 0).find("\n    remedy"), std::string::npos);

  gateway::v1::DiagnoseResponse diagnosis;
  gateway::v1::Diagnosis& one = *diagnosis.add_diagnoses();
  one.set_severity(gateway::v1::FAIL);
  one.set_object(kForged);
  one.set_check(kForged);
  one.set_remedy("reboot\nremedy: rm");
  const std::string text = DiagnosisView(diagnosis, true);
  EXPECT_EQ(text.find("\n    remedy: rm"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nremedy"), std::string::npos) << text;

  types::v1::GatewayStatus status;
  status.set_name(kForged);
  status.set_version(kForged);
  status.set_not_ready_reason(kForged);
  status.add_ports()->set_note(kForged);
  EXPECT_EQ(StatusView(status, true).find("\n    remedy"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::cli
