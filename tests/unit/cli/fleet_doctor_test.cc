// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/commands/fleet_doctor.h"

#include <gtest/gtest.h>

#include "controlplane/cli/exit_code.h"
#include "controlplane/cli/views/doctor_view.h"

namespace rocegw::cli {
namespace {

using gateway::v1::Diagnosis;
using gateway::v1::FAIL;
using gateway::v1::OK;
using gateway::v1::WARN;

constexpr int64_t kNow = 1'790'000'000;
constexpr int64_t kSecond = 1'000'000'000;

void ExpectFinding(const Diagnosis& diagnosis, gateway::v1::Severity severity,
                   const std::string& found) {
  EXPECT_EQ(diagnosis.severity(), severity) << diagnosis.ShortDebugString();
  EXPECT_NE(diagnosis.found().find(found), std::string::npos) << diagnosis.ShortDebugString();
  EXPECT_EQ(diagnosis.remedy().empty(), severity == OK) << diagnosis.ShortDebugString();
}

GatewayReading GoodGateway(const std::string& name) {
  GatewayReading reading;
  reading.gateway.set_name("gateways/" + name);
  auto& status = *reading.gateway.mutable_status();
  status.set_connected(true);
  status.set_agent_version("0.2.0");
  status.set_gateway_version("0.2.0");
  reading.asked = true;
  reading.mtus = {4200};
  return reading;
}

FleetFacts GoodFleet() {
  FleetFacts facts;
  facts.controller_version = "0.2.0";
  facts.gateways = {GoodGateway("a"), GoodGateway("b")};
  facts.now = kNow;
  return facts;
}

types::v1::Condition Broken(const std::string& type, const std::string& message) {
  types::v1::Condition condition;
  condition.set_type(type);
  condition.set_message(message);
  return condition;
}

TEST(FleetState, EachThingThatIsWrong_HasItsWord) {
  GatewayReading reading = GoodGateway("a");
  ExpectFinding(CheckState(reading, kNow), OK, "connected and in sync");
  reading.gateway.mutable_status()->set_desired_revision(9);
  ExpectFinding(CheckState(reading, kNow), WARN, "runs 0, should run 9");
  auto& rejection = *reading.gateway.mutable_status()->add_rejections();
  rejection.set_object("tenants/t/pools/p");
  rejection.set_reason("NO_CAPACITY");
  rejection.set_message("too much");
  ExpectFinding(CheckState(reading, kNow), FAIL, "tenants/t/pools/p: NO_CAPACITY: too much");
  *reading.gateway.mutable_status()->add_conditions() = Broken("Adopted", "another store");
  ExpectFinding(CheckState(reading, kNow), WARN, "another store");
  reading.problem = "not in time";
  ExpectFinding(CheckState(reading, kNow), FAIL, "does not answer: not in time");
  reading.gateway.mutable_status()->clear_rejections();
  *reading.gateway.mutable_status()->add_conditions() = Broken("GatewayReachable", "no daemon");
  EXPECT_EQ(CheckState(reading, kNow).severity(), FAIL);
  reading.gateway.mutable_status()->set_connected(false);
  ExpectFinding(CheckState(reading, kNow), FAIL, "not connected: has never been here");
  reading.gateway.mutable_status()->mutable_last_seen_time()->set_seconds(kNow - 185);
  ExpectFinding(CheckState(reading, kNow), FAIL, "not connected: last seen 3m05s ago");
}

TEST(FleetClock, OnlyWhatIsBeyondTheWayThere_Counts) {
  const ClockReading reading = ReadClock(100 * kSecond, 104 * kSecond, 107 * kSecond);
  EXPECT_EQ(reading.ahead_ns, 5 * kSecond);
  EXPECT_EQ(reading.uncertain_ns, 2 * kSecond);
  GatewayReading gateway = GoodGateway("a");
  gateway.clock = {3 * kSecond, kSecond};
  // Two seconds apart, with an uncertainty of two seconds.
  ExpectFinding(CheckHostClock(gateway, {kSecond, kSecond}), OK, "at most 4000 ms");
  ExpectFinding(CheckHostClock(gateway, {0, 0}), WARN, "3000 ms ahead of");
  gateway.clock = {-90 * kSecond, 0};
  ExpectFinding(CheckHostClock(gateway, {0, 0}), FAIL, "90000 ms behind");
}

TEST(FleetVersions, OneApart_Warns_TwoApart_Fails) {
  FleetFacts facts = GoodFleet();
  facts.gateways[0].gateway.mutable_status()->set_agent_version("0.2.0 (79db21a73e23)");
  ExpectFinding(CheckVersions(facts), OK, "all run 0.2.0");
  facts.gateways[1].gateway.mutable_status()->set_gateway_version("0.1.4");
  ExpectFinding(CheckVersions(facts), WARN,
                "controller 0.2.0; agents 0.2.0 (2); gateways 0.1.4 (1), 0.2.0 (1)");
  facts.gateways[0].gateway.mutable_status()->set_agent_version("0.3.0");
  ExpectFinding(CheckVersions(facts), FAIL, "agents 0.2.0 (1), 0.3.0 (1)");
  facts.gateways[0].gateway.mutable_status()->set_agent_version("1.2.0");
  facts.gateways[1].gateway.mutable_status()->set_gateway_version("0.2.0");
  EXPECT_EQ(CheckVersions(facts).severity(), FAIL) << "another major number";
  // A disconnected gateway may come back with another version.
  facts.gateways[0].gateway.mutable_status()->set_connected(false);
  ExpectFinding(CheckVersions(facts), OK, "all run 0.2.0");
}

TEST(FleetMtus, LinksThatDiffer_AreCounted) {
  FleetFacts facts = GoodFleet();
  ExpectFinding(CheckMtus(facts), OK, "4200");
  facts.gateways.push_back(GoodGateway("c"));
  facts.gateways[0].mtus = {1500};
  ExpectFinding(CheckMtus(facts), WARN, "1500: a; 4200: b and 1 more");
  for (GatewayReading& reading : facts.gateways) reading.mtus.clear();
  ExpectFinding(CheckMtus(facts), OK, "no gateway");
}

TEST(FleetPools, RejectedFails_NotYetEverywhereWarns) {
  types::v1::Pool good;
  good.set_name("tenants/t/pools/good");
  good.mutable_status()->set_gateways_selected(2);
  good.mutable_status()->set_gateways_applied(2);
  ExpectFinding(CheckPools({good}).at(0), OK, "1 pools");
  types::v1::Pool late = good;
  late.mutable_status()->set_gateways_applied(1);
  types::v1::Pool rejected = late;
  rejected.set_name("tenants/t/pools/bad");
  rejected.mutable_status()->set_gateways_rejecting(1);
  auto& rejection = *rejected.mutable_status()->add_rejections();
  rejection.set_gateway("gateways/a");
  rejection.set_reason("NO_CAPACITY");
  rejection.set_message("too much");
  const auto found = CheckPools({good, late, rejected});
  ASSERT_EQ(found.size(), 2U);
  ExpectFinding(found[0], WARN, "runs on 1 of 2");
  ExpectFinding(found[1], FAIL, "rejected by 1 of 2 gateways, a: NO_CAPACITY: too much");
  EXPECT_EQ(found[1].object(), "tenants/t/pools/bad");
}

TEST(ExamineFleet, GatewaysAndFleetTogether_TheWorstFirst) {
  FleetFacts facts = GoodFleet();
  Diagnosis& theirs = *facts.gateways[1].diagnosis.add_diagnoses();
  theirs.set_severity(FAIL);
  theirs.set_check("udp_port");
  theirs.set_object("gateways/b");
  auto& away = facts.gateways.emplace_back(GoodGateway("away"));
  away.gateway.mutable_status()->set_connected(false);
  away.gateway.mutable_status()->mutable_certificate_expire_time()->set_seconds(kNow - 60);
  away.asked = false;
  const auto response = ExamineFleet(facts);
  std::vector<std::string> bad;
  size_t good = 0;
  for (const Diagnosis& one : response.diagnoses()) {
    if (one.severity() == OK) {
      ++good;
    } else {
      EXPECT_EQ(good, 0U) << "the worst come first";
      bad.push_back(one.object() + " " + one.check());
    }
  }
  EXPECT_EQ(bad, (std::vector<std::string>{"gateways/b udp_port", "gateways/away state",
                                           "gateways/away agent_certificate"}));
  EXPECT_EQ(good, 7U) << "state and clock of two, versions, MTUs, pools";
  EXPECT_EQ(WorstOf(response), kConditionFalse);
}

TEST(ExamineFleet, CertificateThatTheAgentSpeaksOf_IsNotToldTwice) {
  FleetFacts facts = GoodFleet();
  facts.gateways.resize(1);
  facts.gateways[0].gateway.mutable_status()->mutable_certificate_expire_time()->set_seconds(1);
  Diagnosis& theirs = *facts.gateways[0].diagnosis.add_diagnoses();
  theirs.set_severity(WARN);
  theirs.set_check("agent_certificate");
  const auto response = ExamineFleet(facts);
  EXPECT_EQ(response.diagnoses(0).severity(), WARN);
  EXPECT_EQ(WorstOf(response), kWarned);
}

TEST(DiagnosisView, ManyOfOneCheck_AreCutUnlessAllIsWanted) {
  gateway::v1::DiagnoseResponse response;
  EXPECT_EQ(WorstOf(response), kOk);
  for (int i = 0; i < 12; ++i) {
    Diagnosis& one = *response.add_diagnoses();
    one.set_severity(FAIL);
    one.set_check("state");
    one.set_object("gateways/g" + std::to_string(i));
    one.set_found("not connected");
    one.set_remedy("start it");
  }
  const std::string text = DiagnosisView(response, false);
  EXPECT_NE(text.find("fail  g9  state\n    not connected\n    remedy: start it\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("g10"), std::string::npos) << text;
  EXPECT_NE(text.find("... and 2 more of state (-o wide)\n"), std::string::npos) << text;
  EXPECT_NE(DiagnosisView(response, true).find("g11"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::cli
