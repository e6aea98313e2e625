// SPDX-License-Identifier: Apache-2.0
// The driver with a store in memory and simulated nodes: what it does by itself, what persons order
// through the store, and what is left when it is killed.
#include "controlplane/migrations/migration_driver.h"

#include <atomic>

#include "controlplane/migrations/nodes/fleet_nodes.h"
#include "rocegw/admin/v1/operations.pb.h"
#include "tests/unit/migrations/driven_cluster.h"

namespace rocegw::migrations {
namespace {

using migration::MigrationState;
using migration::NodeState;
using migration::Order;
using migration::PauseReason;
using migration::Record;
using migration::Transport;
using migration::Verb;

migration::PlanShape Automatic(uint32_t nodes) { return {.nodes = nodes, .approval = false}; }

void ExpectAllOn(DrivenCluster& cluster, Transport transport) {
  for (const migration::NodeFacts& facts : cluster.nodes().facts())
    EXPECT_EQ(facts.actual, transport);
}

TEST(MigrationDriver, AnApprovedMigrationRunsToItsEnd) {
  DrivenCluster cluster(Automatic(6));
  const auto driver = cluster.NewDriver();
  cluster.Start();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
  ExpectAllOn(cluster, Transport::kGateway);
  EXPECT_EQ(cluster.Give({.verb = Verb::kFinalize}), "");
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kFinalized));
  EXPECT_EQ(cluster.nodes().most_executions(), 1U);
}

TEST(MigrationDriver, EachWaveWaitsForItsApproval) {
  DrivenCluster cluster;
  const auto driver = cluster.NewDriver();
  cluster.Start();
  for (uint32_t wave = 1; wave < cluster.plan().waves.size(); ++wave) {
    ASSERT_TRUE(cluster.Await([wave](const Record& record) {
      return record.state == MigrationState::kAwaitingApproval && record.wave == wave;
    }));
    EXPECT_EQ(cluster.Give({.verb = Verb::kApprove, .wave = wave}), "");
  }
  EXPECT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
}

TEST(MigrationDriver, RollbackBringsEveryNodeBack) {
  DrivenCluster cluster(Automatic(4));
  const auto driver = cluster.NewDriver();
  cluster.Start();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
  EXPECT_EQ(cluster.Give({.verb = Verb::kRollback}), "");
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kRolledBack));
  ExpectAllOn(cluster, Transport::kTcp);
  for (const migration::NodeFacts& facts : cluster.nodes().facts())
    EXPECT_EQ(facts.config_hash, facts.original_hash);
}

// Failure case 1 of the list in docs/operate/migration.md: the controller is killed at each step.
TEST(MigrationDriver, ADriverThatIsKilledAfterAnyCommandIsFollowedByOneThatGoesOn) {
  // Each of the two nodes has eight steps.
  for (uint64_t nth = 1; nth <= 16; ++nth) {
    SCOPED_TRACE("killed after command " + std::to_string(nth));
    DrivenCluster cluster(Automatic(2));
    auto driver = cluster.NewDriver();
    std::atomic<bool> killed{false};
    cluster.nodes().LoseAnswer(nth, [&killed] { killed = true; });
    cluster.Start();
    ASSERT_TRUE(cluster.Await([&killed](const Record& record) {
      return killed || record.state == MigrationState::kCompleted;
    }));
    EXPECT_TRUE(killed);
    driver.reset();
    const uint64_t epoch = cluster.Stored().record.epoch;
    driver = cluster.NewDriver();
    ASSERT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
    EXPECT_EQ(cluster.Stored().record.epoch, epoch + 1);
    EXPECT_EQ(cluster.nodes().most_executions(), 1U);
    ExpectAllOn(cluster, Transport::kGateway);
  }
}

TEST(MigrationDriver, OfTwoControllersOneDrives) {
  DrivenCluster cluster(Automatic(6));
  const auto first = cluster.NewDriver();
  const auto second = cluster.NewDriver();
  cluster.Start();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
  EXPECT_EQ(cluster.Stored().record.epoch, 1U);
  EXPECT_EQ(cluster.nodes().most_executions(), 1U);
}

TEST(MigrationDriver, ALostNodeIsQuarantinedAndPauses) {
  DrivenCluster cluster(Automatic(3));
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kPreflighted));
  const uint32_t canary = cluster.plan().waves[0].nodes[0];
  const std::string name = cluster.plan().nodes[canary].name;
  cluster.nodes().LoseAnswer(4, [&cluster, name] { cluster.nodes().SetAway(name, true); });
  ASSERT_EQ(cluster.Give({.verb = Verb::kStart}), "");
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kPaused));
  EXPECT_EQ(cluster.Stored().record.pause_reason, PauseReason::kLostNode);
  EXPECT_EQ(cluster.Stored().record.nodes[canary].state, NodeState::kQuarantined);
  cluster.nodes().SetAway(name, false);
  ASSERT_TRUE(cluster.Await([canary](const Record& r) { return r.nodes[canary].reachable; }));
  EXPECT_EQ(cluster.Give({.verb = Verb::kRetry, .node = canary}), "");
  EXPECT_EQ(cluster.Give({.verb = Verb::kResume}), "");
  EXPECT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
}

TEST(MigrationDriver, APreflightNamesTheNodeThatCannotBeReached) {
  DrivenCluster cluster(Automatic(3));
  cluster.nodes().SetAway("n2", true);
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  EXPECT_EQ(cluster.Stored().record.state, MigrationState::kPlanned);
  EXPECT_EQ(cluster.Give({.verb = Verb::kStart}),
            "it needs a preflight first (n2: there is no connected gateway of this name)");
}

TEST(MigrationDriver, APreflightFindsAnotherInventory) {
  DrivenCluster cluster(Automatic(3));
  cluster.nodes().SetInventory("sha256:another");
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  EXPECT_NE(cluster.Stored().record.reason.find("inventory is not the planned one"),
            std::string::npos);
}

TEST(MigrationDriver, APreflightFindsAnAdapterWithoutTheCallsOfThePlan) {
  DrivenCluster cluster(Automatic(3));
  cluster.nodes().ForgetCalls();
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  EXPECT_NE(cluster.Stored().record.reason.find("does not have the call add-path"),
            std::string::npos);
}

// Failure cases 6 and 7: a path that carries nothing, or no whole packets.
TEST(MigrationDriver, APreflightFindsAPathThatCarriesNoWholePackets) {
  DrivenCluster cluster(Automatic(3));
  cluster.nodes().Block("n3 to n1");
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  EXPECT_EQ(cluster.Stored().record.reason, "n3 to n1: TIMED_OUT at gateways/n3: no answer");
  cluster.nodes().Block("");
  cluster.nodes().SetProblem("n2", "its certificate has ended");
  EXPECT_EQ(cluster.Give({.verb = Verb::kPreflight}), "");
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  EXPECT_EQ(cluster.Stored().record.reason, "n2: its certificate has ended");
  cluster.nodes().SetProblem("n2", "");
  EXPECT_EQ(cluster.Give({.verb = Verb::kPreflight}), "");
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kPreflighted));
  EXPECT_EQ(
      cluster.Stored().record.reason,
      "3 nodes answered, 3 paths carry whole packets (median at most 40 us, p99 90 us; slowest "
      "n2 to n3, 200 MB/s), the inventory "
      "is the planned one");
}

migration::PlanShape Gated() {
  migration::PlanShape shape = Automatic(4);
  shape.gates = {"errors == 0"};
  return shape;
}

TEST(MigrationDriver, GatesThatHoldLetTheWavesPass) {
  DrivenCluster cluster(Gated());
  const auto driver = cluster.NewDriver();
  cluster.Start();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
  EXPECT_GE(cluster.gates().rounds(), cluster.plan().waves.size());
}

TEST(MigrationDriver, AGateThatFailsBeforeTheStartIsFoundByThePreflight) {
  DrivenCluster cluster(Gated());
  cluster.gates().Set({migration::Outcome::kFailed, "gate errors == 0 does not hold {}"});
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.Await([](const Record& record) { return !record.preflight_wanted; }));
  EXPECT_EQ(cluster.Stored().record.state, MigrationState::kPlanned);
  EXPECT_EQ(cluster.Stored().record.reason, "before: gate errors == 0 does not hold {}");
}

TEST(MigrationDriver, AGateThatFailsPausesAndAnswersAfterResume) {
  DrivenCluster cluster(Gated());
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kPreflighted));
  cluster.gates().Set({migration::Outcome::kFailed, "gate errors == 0 does not hold {}"});
  cluster.Start();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kPaused));
  EXPECT_EQ(cluster.Stored().record.pause_reason, PauseReason::kGate);
  EXPECT_EQ(cluster.Stored().record.reason, "gate: gate errors == 0 does not hold {}");
  cluster.gates().Set({});
  EXPECT_EQ(cluster.Give({.verb = Verb::kResume}), "");
  EXPECT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
}

TEST(MigrationDriver, AGateWithoutAnAnswerPausesAtTheEndOfItsWave) {
  DrivenCluster cluster(Gated());
  cluster.gates().Set({migration::Outcome::kInconclusive, "gate errors == 0: no data"});
  const auto driver = cluster.NewDriver();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kPreflighted));
  // The gate may get its first data with the first node.
  EXPECT_NE(cluster.Stored().record.reason.find("undecided: gate errors == 0: no data"),
            std::string::npos);
  cluster.Start();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kPaused));
  const Record record = cluster.Stored().record;
  EXPECT_EQ(record.pause_reason, PauseReason::kInconclusive);
  EXPECT_EQ(record.reason, "inconclusive: gate errors == 0: no data");
  // The canary was migrated before.
  EXPECT_EQ(record.nodes[cluster.plan().waves[0].nodes[0]].state, NodeState::kSoaking);
}

TEST(MigrationDriver, TheBoardShowsWhereAMigrationIs) {
  DrivenCluster cluster({.nodes = 4, .waves = "canary=1,100%"});
  EXPECT_FALSE(cluster.board().Read().drives);
  auto driver = cluster.NewDriver();
  cluster.Start();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kAwaitingApproval));
  // The board is posted after the pass that stored the state.
  ASSERT_TRUE(cluster.Await([&cluster](const Record&) {
    const auto seen = cluster.board().Read().migrations;
    return seen.size() == 1 && seen[0].state == "AWAITING_APPROVAL";
  }));
  const MigrationBoard::View view = cluster.board().Read();
  EXPECT_TRUE(view.drives);
  EXPECT_EQ(view.migrations[0].name, "m1");
  const std::map<std::pair<std::string, std::string>, size_t> nodes = {{{"canary", "DONE"}, 1},
                                                                       {{"wave-2", "PENDING"}, 3}};
  EXPECT_EQ(view.migrations[0].nodes, nodes);
  EXPECT_EQ(view.migrations[0].out_of_service, 0U);
  driver.reset();
  EXPECT_FALSE(cluster.board().Read().drives);
}

TEST(MigrationDriver, EachTransitionIsAudited) {
  DrivenCluster cluster(Automatic(2));
  const auto driver = cluster.NewDriver();
  cluster.Start();
  ASSERT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
  auto records = cluster.store().Range({.range = store::KeyRange::Prefix("audit/")});
  uint64_t changes = 0;
  for (const store::Entry& entry : records->entries) {
    admin::v1::AuditRecord record;
    ASSERT_TRUE(record.ParseFromString(entry.value));
    EXPECT_EQ(record.principal(), "controller");
    EXPECT_EQ(record.resource(), "migrations/m1");
    changes += ReadChanges(record.request()).size();
  }
  // The API audits persons' orders itself; these were given past it.
  uint64_t by_persons = 0;
  auto rows = cluster.store().Range({.range = store::KeyRange::Prefix(EventPrefix("m1"))});
  for (const store::Entry& row : rows->entries) {
    const auto own = ReadChanges(row.value);
    if (own.front().who != "controller") by_persons += own.size();
  }
  EXPECT_GT(by_persons, 0U);
  EXPECT_EQ(changes + by_persons, cluster.Stored().record.changes);
}

TEST(MigrationDriver, ADamagedRowIsNotDrivenAndHarmsNoOther) {
  DrivenCluster cluster(Automatic(3));
  store::Transaction damage;
  damage.then = {store::Operation::Put("migration/m0/head", "{}"),
                 store::Operation::Put("migration/m0/plan", "not a plan")};
  ASSERT_TRUE(cluster.store().Txn(std::move(damage))->succeeded);
  const auto driver = cluster.NewDriver();
  cluster.Start();
  EXPECT_TRUE(cluster.AwaitState(MigrationState::kCompleted));
}

TEST(FleetNodes, ACertificateThatShouldHaveBeenRenewedIsAProblem) {
  const auto now = std::chrono::system_clock::from_time_t(1'000'000);
  types::v1::GatewayState status;
  constexpr std::chrono::hours kDay(24);
  EXPECT_EQ(CertificateProblem(status, kDay, now), "");
  struct Row {
    std::chrono::seconds lifetime;
    int64_t left;
    const char* problem;
  };
  const Row rows[] = {
      {kDay, 6 * 3600, ""},
      {kDay, 6 * 3600 - 1, "its certificate ends in 360 minutes: the agent's renewal fails"},
      {kDay, -1, "its certificate has ended: the agent's renewal fails"},
      {90 * kDay, 6 * 3600, ""},
      {90 * kDay, 6 * 3600 - 1, "its certificate ends in 360 minutes: the agent's renewal fails"},
      {std::chrono::minutes(4), 60, ""},
      {std::chrono::minutes(4), 59, "its certificate ends in 1 minutes: the agent's renewal fails"},
  };
  for (const auto& [lifetime, left, problem] : rows) {
    status.mutable_certificate_expire_time()->set_seconds(1'000'000 + left);
    EXPECT_EQ(CertificateProblem(status, lifetime, now), problem)
        << lifetime.count() << " " << left;
  }
}

}  // namespace
}  // namespace rocegw::migrations
