// SPDX-License-Identifier: Apache-2.0
// Three controllers over one memory store; one of them vanishes silently.
#include "controlplane/sync/connection_keeper.h"

#include <gtest/gtest.h>

#include <future>

#include "controlplane/model/joined.h"
#include "controlplane/model/stored.h"
#include "controlplane/store/local/memory_store.h"
#include "controlplane/sync/presence.h"
#include "tests/support/fleet_fixture.h"

namespace rocegw::sync {
namespace {

using rocegw::testing::GatewayWith;
using rocegw::testing::IntentOf;

class ConnectionKeeperTest : public ::testing::Test {
 protected:
  // Parts of a controller that matter here.
  struct Controller {
    Controller(store::Store& store, const std::string& id)
        : presence(store, id, {}), here(presence.AwaitSaid(std::chrono::seconds(20))) {
      EXPECT_TRUE(here);
      follower = std::move(*FleetFollower::Start(store));
      statuses = std::make_unique<StatusWriter>(store, std::chrono::milliseconds(1));
      keeper = std::make_unique<ConnectionKeeper>(*follower, *statuses, id);
    }
    Presence presence;
    bool here;
    std::unique_ptr<FleetFollower> follower;
    std::unique_ptr<StatusWriter> statuses;
    std::unique_ptr<ConnectionKeeper> keeper;
  };

  void Connected(const std::string& gateway, const std::string& controller) {
    types::v1::Gateway status;
    status.mutable_status()->set_connected(true);
    status.mutable_status()->set_controller(controller);
    status.mutable_status()->set_agent_version("7");
    const auto name = model::NameOf("gateways/" + gateway);
    store::Transaction write;
    write.then = {IntentOf(GatewayWith(gateway)),
                  store::Operation::Put(model::KeyOf(model::Part::kStatus, name),
                                        status.SerializeAsString())};
    ASSERT_TRUE(store_->Txn(std::move(write)).ok());
  }
  types::v1::GatewayState Stored(const std::string& gateway) {
    types::v1::Gateway read;
    const auto entry =
        store_->Get(model::KeyOf(model::Part::kStatus, model::NameOf("gateways/" + gateway)));
    model::ReadStatus(entry.value()->value, read);
    return read.status();
  }
  // Waits until the survivors' reactions to all writes so far are stored.
  void Settle(std::initializer_list<Controller*> controllers) {
    for (Controller* one : controllers) {
      const auto seen = std::make_shared<std::promise<void>>();
      auto future = seen->get_future();
      one->follower->WhenNewest([seen](const auto&) { seen->set_value(); });
      future.wait();
      one->statuses->Flush();
    }
  }

  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
};

TEST_F(ConnectionKeeperTest, GatewaysOfOneThatIsGone_AreNotConnectedAnyMore) {
  auto a = std::make_unique<Controller>(*store_, "a");
  Controller b(*store_, "b");
  Controller c(*store_, "c");
  Connected("at-a", "a");
  Connected("at-b", "b");
  Connected("at-c", "c");
  Settle({a.get(), &b, &c});
  EXPECT_TRUE(Stored("at-a").connected());
  // As after SIGKILL: it writes nothing, and its lease expires.
  const store::LeaseId lease = store_->Get("replica/a").value()->lease;
  a->keeper.reset();
  a->follower.reset();
  store_->ExpireLease(lease);
  Settle({&b, &c});
  EXPECT_FALSE(Stored("at-a").connected());
  EXPECT_EQ(Stored("at-a").agent_version(), "7") << "the rest stays";
  EXPECT_TRUE(Stored("at-b").connected());
  EXPECT_TRUE(Stored("at-c").connected());
}

TEST_F(ConnectionKeeperTest, OneThatStarts_LooksAtWhatIsLeft) {
  Connected("old", "");
  Connected("gone", "before");
  Controller a(*store_, "a");
  Settle({&a});
  EXPECT_FALSE(Stored("old").connected());
  EXPECT_FALSE(Stored("gone").connected());
}

TEST_F(ConnectionKeeperTest, LeaseThatRanOut_IsTakenAnew) {
  Controller a(*store_, "a");
  const store::LeaseId lease = store_->Get("replica/a").value()->lease;
  store::BlockingWatch watch(*store_, store::KeyRange::Key("replica/a"),
                             store_->Range({}).value().revision + 1);
  store_->ExpireLease(lease);
  auto gone = watch.Next(std::chrono::seconds(20));
  ASSERT_TRUE(gone.ok() && gone->has_value());
  EXPECT_TRUE((*gone)->changes[0].deleted);
  auto back = watch.Next(std::chrono::seconds(20));
  ASSERT_TRUE(back.ok() && back->has_value());
  EXPECT_FALSE((*back)->changes[0].deleted);
}

}  // namespace
}  // namespace rocegw::sync
