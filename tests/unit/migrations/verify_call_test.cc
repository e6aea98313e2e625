// SPDX-License-Identifier: Apache-2.0
// Verification by hand before, while and after a migration runs: it finds nodes that fell back, and
// changes nothing.
#include "controlplane/migrations/verify_call.h"

#include <future>

#include "tests/unit/migrations/driven_cluster.h"

namespace rocegw::migrations {
namespace {

using admin::v1::NodeVerification;
using admin::v1::VerifyMigrationRequest;
using admin::v1::VerifyMigrationResponse;
using migration::MigrationState;
using migration::Transport;
using migration::Verb;

constexpr char kAudit[] = "audit/test";

struct Verified {
  grpc::Status status;
  VerifyMigrationResponse response;
  const NodeVerification& operator[](int i) const { return response.nodes(i); }
};

Verified Verify(DrivenCluster& cluster, const std::vector<std::string>& nodes,
                const std::string& name = "migrations/m1") {
  VerifyMigrationRequest request;
  request.set_name(name);
  for (const std::string& node : nodes) request.add_nodes(node);
  Verified verified;
  std::promise<grpc::Status> done;
  std::make_shared<VerifyCall>(cluster.store(), cluster.nodes(), request,
                               store::Operation::Put(kAudit, "verify"), std::chrono::seconds(5),
                               &verified.response,
                               [&done](const grpc::Status& status) { done.set_value(status); })
      ->Start();
  verified.status = done.get_future().get();
  return verified;
}

// A cluster of three nodes that are migrated, and no driver that would change something meanwhile.
class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    auto driver = cluster_.NewDriver();
    cluster_.Start();
    EXPECT_TRUE(cluster_.AwaitState(MigrationState::kCompleted));
  }
  bool IsAudited() {
    auto found = cluster_.store().Get(kAudit);
    return found.ok() && found->has_value();
  }

  DrivenCluster cluster_{{.nodes = 3, .approval = false}};
};

TEST_F(VerifyTest, BothWitnessesOfEachNode_InTheOrderOfTheRequest) {
  const auto before = cluster_.Stored();
  const uint64_t commands = cluster_.nodes().commands();
  const Verified verified = Verify(cluster_, {"n3", "n1"});
  ASSERT_TRUE(verified.status.ok()) << verified.status.error_message();
  ASSERT_EQ(verified.response.nodes_size(), 2);
  EXPECT_EQ(verified[0].node(), "n3");
  EXPECT_EQ(verified[1].node(), "n1");
  for (const NodeVerification& node : verified.response.nodes()) {
    EXPECT_EQ(node.state(), "DONE");
    EXPECT_NE(node.wave(), "");
    EXPECT_EQ(node.expected(), "gateway");
    EXPECT_EQ(node.stated(), "gateway");
    EXPECT_EQ(node.counted(), "gateway");
    EXPECT_EQ(node.verdict(), "verified") << node.reason();
  }
  EXPECT_EQ(cluster_.Stored().revision, before.revision) << "the migration is as it was";
  EXPECT_EQ(cluster_.nodes().commands(), commands) << "a question is no step";
  EXPECT_TRUE(IsAudited());
}

// Failure case 8 after the migration's own verification: the fall-back comes later.
TEST_F(VerifyTest, C08_ANodeThatFellBackLaterIsFound) {
  cluster_.nodes().FallBack("n2", Transport::kTcp);
  const Verified verified = Verify(cluster_, {"n1", "n2"});
  EXPECT_EQ(verified[0].verdict(), "verified");
  EXPECT_EQ(verified[1].verdict(), "fell-back");
  EXPECT_EQ(verified[1].stated(), "gateway");
  EXPECT_EQ(verified[1].counted(), "tcp");
  EXPECT_EQ(verified[1].reason(), "the application says gateway, but its bytes go over tcp");
}

TEST_F(VerifyTest, ANodeThatIsAwayIsUnknown) {
  cluster_.nodes().SetAway("n2", true);
  EXPECT_EQ(Verify(cluster_, {"n2"})[0].verdict(), "unknown");
}

TEST_F(VerifyTest, NodesThatAreBackAreAskedForTheirOldTransport) {
  EXPECT_EQ(cluster_.Give({.verb = Verb::kRollback}), "");
  {
    const auto driver = cluster_.NewDriver();
    ASSERT_TRUE(cluster_.AwaitState(MigrationState::kRolledBack));
  }
  EXPECT_EQ(Verify(cluster_, {"n1"})[0].verdict(), "verified");
  EXPECT_EQ(Verify(cluster_, {"n1"})[0].expected(), "tcp");
  cluster_.nodes().FallBack("n1", Transport::kGateway);
  EXPECT_EQ(Verify(cluster_, {"n1"})[0].verdict(), "fell-back");
}

TEST_F(VerifyTest, AnAnswerFromBeforeARollbackDecidesNothing) {
  cluster_.nodes().OnVerify(
      [this](const std::string&) { (void)cluster_.Give({.verb = Verb::kRollback}); });
  // The order alone changes the state of the migration, not yet that of the node.
  EXPECT_EQ(Verify(cluster_, {"n1"})[0].verdict(), "verified");
  cluster_.nodes().OnVerify([this](const std::string&) {
    const auto driver = cluster_.NewDriver();
    (void)cluster_.AwaitState(MigrationState::kRolledBack);
  });
  const Verified late = Verify(cluster_, {"n1"});
  EXPECT_EQ(late[0].verdict(), "unknown");
  EXPECT_EQ(late[0].reason(), "the state of the node changed meanwhile");
}

TEST_F(VerifyTest, UnknownNamesAreRefusedBeforeAnyNodeIsAsked) {
  bool asked = false;
  cluster_.nodes().OnVerify([&asked](const std::string&) { asked = true; });
  EXPECT_EQ(Verify(cluster_, {"n1", "n99"}).status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Verify(cluster_, {"n1"}, "migrations/other").status.error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_FALSE(asked);
  EXPECT_FALSE(IsAudited());
}

TEST(VerifyCall, NodesThatHaveNotChangedAreNotAsked) {
  DrivenCluster cluster{{.nodes = 3}};
  const Verified verified = Verify(cluster, {"n1"});
  ASSERT_TRUE(verified.status.ok());
  EXPECT_EQ(verified[0].verdict(), "no-claim");
  EXPECT_EQ(verified[0].expected(), "");
  EXPECT_EQ(verified[0].state(), "PENDING");
}

TEST(Verifications, AreBounded) {
  Verifications verifications;
  for (uint32_t i = 0; i < Verifications::kMost; ++i) EXPECT_TRUE(verifications.Begin());
  EXPECT_FALSE(verifications.Begin());
  verifications.End();
  EXPECT_TRUE(verifications.Begin());
}

}  // namespace
}  // namespace rocegw::migrations
