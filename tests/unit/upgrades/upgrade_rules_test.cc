// SPDX-License-Identifier: Apache-2.0
// Rules of an upgrade: waves, limits, what pauses it, what a person can order.
#include "controlplane/upgrades/upgrade_rules.h"

#include <gtest/gtest.h>

#include <map>

namespace rocegw::upgrades {
namespace {

using admin::v1::Upgrade;
using admin::v1::UpgradedGateway;
using fleet::v1::ReplacementReport;

constexpr int64_t kBegin = 1'800'000'000;

std::vector<std::string> Names(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("gateways/g" + std::to_string(i));
  return names;
}

std::vector<uint32_t> WaveSizes(const std::vector<std::string>& sizes, int gateways) {
  Upgrade upgrade;
  for (const std::string& size : sizes) upgrade.mutable_spec()->add_waves(size);
  EXPECT_EQ(Plan(Names(gateways), kBegin, upgrade), "");
  std::vector<uint32_t> counts(upgrade.waves());
  for (const UpgradedGateway& gateway : upgrade.gateways()) ++counts.at(gateway.wave() - 1);
  return counts;
}

TEST(UpgradePlan, TheLastSizeIsRepeated) {
  EXPECT_EQ(WaveSizes({"1", "2"}, 6), (std::vector<uint32_t>{1, 2, 2, 1}));
  EXPECT_EQ(WaveSizes({"100%"}, 3), (std::vector<uint32_t>{3}));
  EXPECT_EQ(WaveSizes({"7"}, 3), (std::vector<uint32_t>{3}));
}

TEST(UpgradePlan, PercentagesAreOfAllGatewaysAndAtLeastOne) {
  EXPECT_EQ(WaveSizes({"1%", "50%"}, 10), (std::vector<uint32_t>{1, 5, 4}));
  EXPECT_EQ(WaveSizes({}, 20), (std::vector<uint32_t>{1, 2, 10, 7}));
}

TEST(UpgradePlan, WrongSizesAreNamed) {
  for (const char* const size : {"0", "0%", "101%", "-1", "x", "", "1.5"}) {
    Upgrade upgrade;
    upgrade.mutable_spec()->add_waves(size);
    EXPECT_EQ(Plan(Names(1), kBegin, upgrade),
              std::string("'") + size + "' is no size of a wave: a number, or 10%");
  }
  Upgrade upgrade;
  EXPECT_EQ(Plan({}, kBegin, upgrade), "there is no such gateway");
}

class UpgradeRules : public ::testing::Test {
 protected:
  void Begin(int gateways, const std::vector<std::string>& waves = {"100%"}) {
    for (const std::string& size : waves) spec().add_waves(size);
    ASSERT_EQ(Plan(Names(gateways), now_, upgrade_), "");
    for (const UpgradedGateway& gateway : upgrade_.gateways())
      hosts_[gateway.name()] = {.connected = true, .version = "0.1"};
  }
  admin::v1::UpgradeSpec& spec() { return *upgrade_.mutable_spec(); }
  HostState& HostOf(int index) { return hosts_[upgrade_.gateways(index).name()]; }
  Hosts hosts() {
    return [this](const std::string& name) { return hosts_.at(name); };
  }
  std::vector<int> Due() const {
    return Next([this](const std::string& name) { return hosts_.at(name); }, upgrade_);
  }
  Step Proceed(int64_t seconds = 0) {
    now_ += seconds;
    return Advance(hosts(), {.now = now_, .driven_since = driven_since_}, upgrade_);
  }
  Step Start(int index, uint64_t take_overs = 4, uint64_t sessions = 3) {
    types::v1::GatewayStatus status;
    status.set_version("0.1");
    status.set_revision("abc");
    status.mutable_take_overs()->set_count(take_overs);
    status.mutable_totals()->set_sessions(sessions);
    return BeginReplacement(index, status, now_, upgrade_);
  }
  static ReplacementReport Good() {
    ReplacementReport report;
    report.mutable_after()->set_ready(true);
    report.mutable_after()->set_version("0.2");
    report.mutable_after()->mutable_totals()->set_sessions(3);
    report.mutable_after()->mutable_take_overs()->set_count(5);
    report.mutable_after()->mutable_take_overs()->mutable_last_blackout()->set_nanos(9'000'000);
    report.mutable_handed_over()->set_sessions(3);
    return report;
  }
  static ReplacementReport Refused() {
    ReplacementReport report;
    report.set_refused(true);
    report.set_reason("sessions");
    report.set_text("XRC domains");
    return report;
  }
  void End(int index, const ReplacementReport& report) {
    EXPECT_FALSE(EndReplacement(index, report, now_, upgrade_).empty());
  }
  void Replace(int index) {
    EXPECT_FALSE(Start(index).empty());
    End(index, Good());
  }
  UpgradedGateway::State StateOf(int index) const { return upgrade_.gateways(index).state(); }
  std::string Order(admin::v1::UpgradeVerb verb) {
    Step step;
    return Give(verb, "anna", now_, upgrade_, step);
  }

  int64_t now_ = kBegin;
  int64_t driven_since_ = kBegin;
  Upgrade upgrade_;
  std::map<std::string, HostState> hosts_;
};

TEST_F(UpgradeRules, OneAfterTheOtherIsReplacedUntilAllAre) {
  Begin(2);
  EXPECT_EQ(Due(), (std::vector<int>{0}));
  EXPECT_FALSE(Start(0).empty());
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACING);
  EXPECT_TRUE(Due().empty());
  End(0, Good());
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACED);
  EXPECT_EQ(upgrade_.gateways(0).version_before(), "0.1 (abc)");
  EXPECT_EQ(upgrade_.gateways(0).version_after(), "0.2");
  EXPECT_EQ(upgrade_.gateways(0).blackout().nanos(), 9'000'000);
  EXPECT_EQ(Due(), (std::vector<int>{1}));
  Replace(1);
  Proceed();
  EXPECT_EQ(upgrade_.state(), Upgrade::RUNNING);
  Proceed(10);
  EXPECT_EQ(upgrade_.state(), Upgrade::DONE);
  EXPECT_EQ(upgrade_.reason(), "");
}

TEST_F(UpgradeRules, AsManyAsMayBeUnavailableAreReplacedAtOnce) {
  spec().set_max_unavailable(3);
  Begin(5);
  EXPECT_EQ(Due(), (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(Start(0).empty());
  EXPECT_EQ(Due(), (std::vector<int>{1, 2}));
  EXPECT_FALSE(Start(1).empty());
  EXPECT_FALSE(Start(2).empty());
  EXPECT_TRUE(Start(3).empty());
}

TEST_F(UpgradeRules, TheNextWaveBeginsAfterTheSoak) {
  Begin(3, {"1", "2"});
  Replace(0);
  Proceed();
  EXPECT_TRUE(Due().empty());
  Proceed(9);
  EXPECT_EQ(upgrade_.wave(), 1U);
  Proceed(1);
  EXPECT_EQ(upgrade_.wave(), 2U);
  EXPECT_EQ(Due(), (std::vector<int>{1}));
}

TEST_F(UpgradeRules, APersonLetsEachWaveBeginWhereTheSpecSaysSo) {
  spec().set_pause_after_waves(true);
  Begin(2, {"1"});
  Replace(0);
  Proceed();
  Proceed(10);
  EXPECT_EQ(upgrade_.state(), Upgrade::PAUSED);
  EXPECT_EQ(upgrade_.reason(), "wave 1 of 2 is over");
  EXPECT_EQ(Order(admin::v1::RESUME_UPGRADE), "");
  EXPECT_EQ(Due(), (std::vector<int>{1}));
  Replace(1);
  Proceed();
  Proceed(10);
  EXPECT_EQ(upgrade_.state(), Upgrade::DONE);
}

TEST_F(UpgradeRules, TheFirstFailurePausesAndResumeAcceptsIt) {
  Begin(3);
  EXPECT_FALSE(Start(0).empty());
  End(0, Refused());
  EXPECT_EQ(StateOf(0), UpgradedGateway::REFUSED);
  EXPECT_EQ(upgrade_.gateways(0).text(), "XRC domains");
  EXPECT_EQ(upgrade_.state(), Upgrade::PAUSED);
  EXPECT_EQ(upgrade_.reason(), "gateways/g0 REFUSED: sessions");
  EXPECT_TRUE(Due().empty());
  EXPECT_EQ(Order(admin::v1::RESUME_UPGRADE), "");
  EXPECT_EQ(Due(), (std::vector<int>{1}));
  Replace(1);
  EXPECT_FALSE(Start(2).empty());
  End(2, Refused());
  EXPECT_EQ(upgrade_.state(), Upgrade::PAUSED);
  EXPECT_EQ(Order(admin::v1::RESUME_UPGRADE), "");
  Proceed();
  Proceed(10);
  EXPECT_EQ(upgrade_.state(), Upgrade::DONE);
  EXPECT_EQ(upgrade_.reason(), "2 REFUSED");
}

TEST_F(UpgradeRules, RetryTriesFailedGatewaysOfEarlierWavesAgain) {
  spec().set_max_failures(1);
  Begin(2, {"1"});
  EXPECT_FALSE(Start(0).empty());
  End(0, Refused());
  EXPECT_EQ(upgrade_.state(), Upgrade::RUNNING);
  Proceed();
  Proceed(10);
  EXPECT_EQ(upgrade_.wave(), 2U);
  EXPECT_EQ(Order(admin::v1::RETRY_UPGRADE), "");
  EXPECT_EQ(Due(), (std::vector<int>{0}));
  Replace(0);
  Replace(1);
  Proceed();
  Proceed(10);
  EXPECT_EQ(upgrade_.state(), Upgrade::DONE);
  EXPECT_EQ(upgrade_.reason(), "");
}

struct BadReport {
  const char* reason;
  std::function<void(ReplacementReport&)> spoil;
};

TEST_F(UpgradeRules, AGatewayThatIsNotAsItShouldBeAfterwardsHasFailed) {
  const BadReport cases[] = {
      {"not_ready", [](ReplacementReport& report) { report.mutable_after()->set_ready(false); }},
      {"not_ready", [](ReplacementReport& report) { report.clear_after(); }},
      {"version", [](ReplacementReport& report) { report.mutable_after()->set_version("0.1"); }},
      {"sessions",
       [](ReplacementReport& report) {
         report.mutable_after()->mutable_totals()->set_sessions(2);
       }},
      {"not_replaced",
       [](ReplacementReport& report) {
         report.mutable_after()->mutable_take_overs()->set_count(4);
       }},
      {"sessions",
       [](ReplacementReport& report) {
         report.clear_handed_over();
         report.mutable_after()->mutable_totals()->set_sessions(2);
       }},
      {"restarted", [](ReplacementReport& report) { report.set_reason("restarted"); }}};
  spec().set_version("0.2");
  spec().set_max_failures(100);
  Begin(static_cast<int>(std::size(cases)));
  for (int i = 0; i < static_cast<int>(std::size(cases)); ++i) {
    SCOPED_TRACE(i);
    ReplacementReport report = Good();
    cases[i].spoil(report);
    EXPECT_FALSE(Start(i).empty());
    End(i, report);
    EXPECT_EQ(StateOf(i), UpgradedGateway::FAILED);
    EXPECT_EQ(upgrade_.gateways(i).reason(), cases[i].reason);
  }
}

TEST_F(UpgradeRules, EndedSessionsAreNoFailureWhereTheSpecSaysSo) {
  spec().set_sessions_may_end(true);
  Begin(1);
  ReplacementReport report = Good();
  report.mutable_after()->mutable_totals()->set_sessions(2);
  EXPECT_FALSE(Start(0).empty());
  End(0, report);
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACED);
}

TEST_F(UpgradeRules, GatewaysWithTheVersionAreSkipped) {
  spec().set_version("0.2");
  Begin(2);
  HostOf(0).version = "0.2";
  Proceed();
  EXPECT_EQ(StateOf(0), UpgradedGateway::SKIPPED);
  EXPECT_EQ(Due(), (std::vector<int>{1}));
}

TEST_F(UpgradeRules, AGatewayThatIsAwayForTooLongIsAFailure) {
  Begin(3);
  HostOf(1).connected = false;
  HostOf(2).answers = false;
  Replace(0);
  Proceed(299);
  EXPECT_EQ(StateOf(1), UpgradedGateway::WAITING);
  Proceed(1);
  EXPECT_EQ(StateOf(1), UpgradedGateway::LOST);
  EXPECT_EQ(upgrade_.gateways(1).reason(), "not_connected");
  EXPECT_EQ(StateOf(2), UpgradedGateway::LOST);
  EXPECT_EQ(upgrade_.gateways(2).reason(), "no_answer");
  EXPECT_EQ(upgrade_.state(), Upgrade::PAUSED);
  EXPECT_EQ(upgrade_.reason(), "gateways/g1 LOST: not_connected");
  EXPECT_EQ(Order(admin::v1::RESUME_UPGRADE), "");
  Proceed();
  Proceed(10);
  EXPECT_EQ(upgrade_.state(), Upgrade::DONE);
  EXPECT_EQ(upgrade_.reason(), "2 LOST");
}

TEST_F(UpgradeRules, AShortDisconnectInAnOldWaveLosesNoGateway) {
  Begin(1);
  HostOf(0) = {.connected = false, .away_since = kBegin + 1000};
  Proceed(1000);
  EXPECT_EQ(StateOf(0), UpgradedGateway::WAITING);
  Proceed(299);
  EXPECT_EQ(StateOf(0), UpgradedGateway::WAITING);
  Proceed(1);
  EXPECT_EQ(StateOf(0), UpgradedGateway::LOST);
}

TEST_F(UpgradeRules, AControllerThatTakesOverAsksBeforeItMissesADeadline) {
  Begin(1);
  EXPECT_FALSE(Start(0).empty());
  driven_since_ = kBegin + 600;
  Proceed(600);
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACING);
  Proceed(74);
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACING);
  Proceed(1);
  EXPECT_EQ(StateOf(0), UpgradedGateway::FAILED);
}

TEST_F(UpgradeRules, ARetryDoesNotReplaceAGatewayWhoseOrderWasCarriedOut) {
  Begin(1);
  EXPECT_FALSE(Start(0, 4).empty());
  Proceed(75);
  EXPECT_TRUE(upgrade_.gateways(0).result_unknown());
  EXPECT_EQ(Order(admin::v1::RETRY_UPGRADE), "");
  // The agent reports a take-over if the gateway has more than the order says.
  EXPECT_FALSE(Start(0, 5).empty());
  EXPECT_EQ(upgrade_.gateways(0).take_overs(), 4U);
  End(0, Good());
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACED);
}

TEST_F(UpgradeRules, ARetryReplacesAGatewayWhoseResultIsKnown) {
  spec().set_version("0.2");
  Begin(1);
  EXPECT_FALSE(Start(0, 4).empty());
  ReplacementReport report = Good();
  report.mutable_after()->set_version("0.1");
  End(0, report);
  EXPECT_EQ(Order(admin::v1::RETRY_UPGRADE), "");
  EXPECT_FALSE(Start(0, 5).empty());
  EXPECT_EQ(upgrade_.gateways(0).take_overs(), 5U);
}

TEST_F(UpgradeRules, AnAgentsMissedDeadlineLeavesTheResultOpenUnlessTheTakeOverIsCounted) {
  spec().set_max_failures(2);
  spec().set_max_unavailable(2);
  Begin(2);
  ReplacementReport report = Good();
  report.set_reason("deadline");
  EXPECT_FALSE(Start(0, 5).empty());
  End(0, report);
  EXPECT_TRUE(upgrade_.gateways(0).result_unknown());
  EXPECT_FALSE(Start(1, 4).empty());
  End(1, report);
  EXPECT_FALSE(upgrade_.gateways(1).result_unknown());
}

TEST_F(UpgradeRules, AnAgentThatDoesNotReportHasFailed) {
  Begin(1);
  EXPECT_FALSE(Start(0).empty());
  Proceed(74);
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACING);
  Proceed(1);
  EXPECT_EQ(StateOf(0), UpgradedGateway::FAILED);
  EXPECT_EQ(upgrade_.gateways(0).reason(), "deadline");
  EXPECT_EQ(upgrade_.state(), Upgrade::PAUSED);
  // A report that comes nevertheless changes nothing.
  EXPECT_TRUE(EndReplacement(0, Good(), now_, upgrade_).empty());
}

TEST_F(UpgradeRules, AReplacedGatewayThatIsAwayAfterTheSoakHasFailed) {
  Begin(2, {"1"});
  Replace(0);
  Proceed();
  HostOf(0).connected = false;
  Proceed(39);
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACED);
  Proceed(1);
  EXPECT_EQ(StateOf(0), UpgradedGateway::FAILED);
  EXPECT_EQ(upgrade_.gateways(0).reason(), "disconnected");
  EXPECT_EQ(upgrade_.state(), Upgrade::PAUSED);
  EXPECT_EQ(upgrade_.wave(), 1U);
}

TEST_F(UpgradeRules, AGatewayThatHasJustGoneAfterTheSoakIsWaitedFor) {
  Begin(2, {"1"});
  Replace(0);
  Proceed();
  HostOf(0) = {.connected = false, .away_since = kBegin + 600};
  Proceed(629);
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACED);
  Proceed(1);
  EXPECT_EQ(StateOf(0), UpgradedGateway::FAILED);
}

TEST_F(UpgradeRules, AReplacementInProgressEndsDuringAPause) {
  Begin(2);
  EXPECT_FALSE(Start(0).empty());
  EXPECT_EQ(Order(admin::v1::PAUSE_UPGRADE), "");
  EXPECT_EQ(upgrade_.reason(), "by anna");
  End(0, Good());
  EXPECT_EQ(StateOf(0), UpgradedGateway::REPLACED);
  Proceed(1000);
  EXPECT_EQ(upgrade_.state(), Upgrade::PAUSED);
  EXPECT_TRUE(Start(1).empty());
}

TEST_F(UpgradeRules, AnAbortWaitsForTheReplacementInProgress) {
  Begin(2);
  EXPECT_FALSE(Start(0).empty());
  EXPECT_EQ(Order(admin::v1::ABORT_UPGRADE), "");
  Proceed();
  EXPECT_EQ(upgrade_.state(), Upgrade::ABORTING);
  EXPECT_EQ(Order(admin::v1::RESUME_UPGRADE), "it ends");
  End(0, Good());
  Proceed();
  EXPECT_EQ(upgrade_.state(), Upgrade::ABORTED);
  EXPECT_EQ(StateOf(1), UpgradedGateway::WAITING);
  EXPECT_EQ(Order(admin::v1::RETRY_UPGRADE), "it has ended");
}

TEST_F(UpgradeRules, OrdersThatMakeNoSenseAreRefused) {
  Begin(1);
  EXPECT_EQ(Order(admin::v1::RESUME_UPGRADE), "it is not paused");
  EXPECT_EQ(Order(admin::v1::RETRY_UPGRADE), "it has no failed or lost gateway");
  EXPECT_EQ(Order(admin::v1::UPGRADE_VERB_UNSPECIFIED), "this order is not known");
  EXPECT_EQ(Order(admin::v1::PAUSE_UPGRADE), "");
  EXPECT_EQ(Order(admin::v1::PAUSE_UPGRADE), "it is paused already");
}

TEST_F(UpgradeRules, ATextOfAnAgentIsBounded) {
  Begin(1);
  ReplacementReport report = Refused();
  report.set_text(std::string(100'000, 'x') + "\n\x1b");
  EXPECT_FALSE(Start(0).empty());
  End(0, report);
  EXPECT_LE(upgrade_.gateways(0).text().size(), 300U);
}

}  // namespace
}  // namespace rocegw::upgrades
