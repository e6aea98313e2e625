// SPDX-License-Identifier: Apache-2.0
// Status of a running migration: four questions answered in lines of at most 80 columns.
#include <gtest/gtest.h>

#include <sstream>

#include "controlplane/cli/migrate/status_view.h"

namespace rocegw::cli {
namespace {

using admin::v1::Migration;

constexpr int64_t kNow = 1'800'000'000;

Migration Running() {
  Migration migration;
  migration.set_name("migrations/tcp-to-gateway");
  migration.set_cluster("c1");
  migration.set_adapter("generic");
  migration.set_target("gateway");
  migration.set_state("RUNNING");
  migration.set_reason("approved");
  migration.mutable_since()->set_seconds(kNow - 62);
  migration.mutable_read_time()->set_seconds(kNow);
  migration.mutable_limits()->set_soak_seconds(600);
  migration.mutable_limits()->set_step_deadline_seconds(600);
  migration.mutable_limits()->set_lost_after_seconds(120);
  for (const char* name : {"canary", "wave-2", "wave-3"}) {
    admin::v1::MigrationWave& wave = *migration.add_waves();
    wave.set_name(name);
    wave.set_state("WAITING");
    wave.set_nodes(2);
    (*wave.mutable_states())["PENDING"] = 2;
    wave.mutable_since()->set_seconds(kNow - 60);
  }
  migration.mutable_waves(0)->set_state("VERIFIED");
  migration.mutable_waves(1)->set_state("RUNNING");
  admin::v1::MigrationNode& node = *migration.add_nodes();
  node.set_name("n3");
  node.set_state("PREFERRED");
  node.set_step("drain");
  node.set_reachable(true);
  node.mutable_since()->set_seconds(kNow - 5);
  node.mutable_step_deadline()->set_seconds(kNow + 90);
  migration.add_exits("pause");
  return migration;
}

std::string LineOf(const Migration& migration, const std::string& name) {
  std::istringstream lines(MigrationStatusText(migration, 80));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return line.substr(12);
  }
  return "no line";
}

TEST(MigrationStatusView, ARunningStepIsNamedWithItsDeadline) {
  EXPECT_EQ(LineOf(Running(), "waits for"), "n3: drain (at most 1m30s)");
  EXPECT_EQ(LineOf(Running(), "next"), "wave wave-3 (2 nodes), which a person approves");
  EXPECT_EQ(LineOf(Running(), "state"), "RUNNING for 1m02s");
}

TEST(MigrationStatusView, APersonIsNamedWhereOneIsWaitedFor) {
  Migration migration = Running();
  migration.mutable_nodes()->Clear();
  migration.set_state("AWAITING_APPROVAL");
  migration.mutable_waves(1)->set_state("WAITING");
  EXPECT_EQ(LineOf(migration, "waits for"), "a person: approve wave-2");
  migration.set_state("PREFLIGHTED");
  EXPECT_EQ(LineOf(migration, "waits for"), "a person: start");
  migration.set_state("COMPLETED");
  EXPECT_EQ(LineOf(migration, "waits for"), "a person: finalize");
}

TEST(MigrationStatusView, ASoakSaysHowLongItTakes) {
  Migration migration = Running();
  migration.mutable_nodes()->Clear();
  migration.mutable_waves(1)->set_state("SOAKING");
  EXPECT_EQ(LineOf(migration, "waits for"), "the end of the soak in 9m00s");
}

TEST(MigrationStatusView, NoLineIsWiderThan80ColumnsWhateverTheNames) {
  Migration migration = Running();
  const std::string longest(63, 'x');
  migration.set_name("migrations/" + longest);
  migration.set_cluster(longest);
  migration.set_reason(longest + " " + longest + " because of \033[31m" + longest);
  migration.mutable_waves(1)->set_name(longest);
  for (const char* state : {"SOAKING", "PREFERRED", "QUARANTINED"})
    (*migration.mutable_waves(1)->mutable_states())[state] = 1000;
  for (int i = 0; i < 30; ++i) {
    admin::v1::MigrationNode& node = *migration.add_nodes();
    node = migration.nodes(0);
    node.set_name(longest + std::to_string(i));
    node.set_reason(longest);
  }
  for (const char* state : {"PLANNED", "PREFLIGHTED", "RUNNING", "PAUSED", "AWAITING_APPROVAL",
                            "ROLLING_BACK", "ROLLED_BACK", "FAILED", "COMPLETED", "FINALIZING"}) {
    migration.set_state(state);
    std::istringstream lines(MigrationStatusText(migration, 80));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80U) << state << ": " << line;
      EXPECT_EQ(line.find('\033'), std::string::npos);
    }
  }
}

TEST(MigrationStatusView, FindingsOfThePreflightAreShownUntilTheStart) {
  Migration migration = Running();
  admin::v1::PreflightFinding& found = *migration.add_findings();
  found.set_class_("warns");
  found.set_subject("n1 to n2");
  found.set_text("the DSCP is changed on the way: kept for 0 of 400");
  found.set_remedy(
      "trust the DSCP at each switch port and virtual switch; else RoCE is best effort");
  const std::string shown =
      "\nwarns: n1 to n2: the DSCP is changed on the way: kept for 0 of 400\n"
      "        remedy: trust the DSCP at each switch port and virtual switch; else RoCE\n"
      "        is best effort\n";
  EXPECT_EQ(MigrationStatusText(migration, 80).find(shown), std::string::npos);
  migration.set_state("PREFLIGHTED");
  EXPECT_NE(MigrationStatusText(migration, 80).find(shown), std::string::npos)
      << MigrationStatusText(migration, 80);
  EXPECT_NE(MigrationReportText(migration, {}).find("| warns | n1 to n2 | the DSCP"),
            std::string::npos);
}

TEST(MigrationStatusView, AReportHasEveryNodeAndEvent) {
  admin::v1::ListMigrationEventsResponse events;
  admin::v1::MigrationEvent& event = *events.add_events();
  event.set_who("spiffe://rocegw/user/alice");
  event.set_subject("wave wave-2");
  event.set_reason("approved");
  const std::string text = MigrationReportText(Running(), events);
  EXPECT_NE(text.find("| n3 |"), std::string::npos);
  EXPECT_NE(text.find("| spiffe://rocegw/user/alice | wave wave-2 |"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::cli
