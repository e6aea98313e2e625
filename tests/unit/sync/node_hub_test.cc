// SPDX-License-Identifier: Apache-2.0
// Hub, follower and status writer over a memory store, with simulated agents.
#include "controlplane/sync/node_hub.h"

#include <gtest/gtest.h>

#include <future>

#include "controlplane/model/joined.h"
#include "controlplane/store/local/memory_store.h"
#include "tests/support/fleet_fixture.h"

namespace rocegw::sync {
namespace {

using rocegw::testing::GatewayWith;
using rocegw::testing::IntentOf;
using rocegw::testing::PoolWith;
using rocegw::testing::TenantWith;

// Agent's end: collects what it is sent.
class Agent : public NodeStream {
 public:
  void Send(const fleet::v1::SyncResponse& message) override {
    const std::lock_guard lock(mutex_);
    pushes_.push_back(message.push());
    changed_.notify_all();
  }
  void Close(StreamEnd why) override {
    const std::lock_guard lock(mutex_);
    end_ = why;
    changed_.notify_all();
  }
  types::v1::Push NextPush() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !pushes_.empty(); });
    types::v1::Push push = pushes_.front();
    pushes_.erase(pushes_.begin());
    return push;
  }
  std::optional<StreamEnd> end() {
    const std::lock_guard lock(mutex_);
    return end_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<types::v1::Push> pushes_;
  std::optional<StreamEnd> end_;
};

class NodeHubTest : public ::testing::Test {
 protected:
  NodeHubTest() {
    Put(GatewayWith("g"));
    Put(GatewayWith("h"));
    hub_ = std::make_unique<NodeHub>(*follower_, statuses_, store_->uuid(),
                                     NodeHubOptions{.controller = "us"});
  }
  template <typename Object>
  store::Revision Put(const Object& object) {
    store::Transaction write;
    write.then.push_back(IntentOf(object));
    const store::Revision revision = store_->Txn(std::move(write)).value().revision;
    Reached(revision);
    return revision;
  }
  void Reached(store::Revision revision) {
    // Shared: the thread that sets it may still be inside it when the test continues.
    const auto reached = std::make_shared<std::promise<void>>();
    auto future = reached->get_future();
    follower_->WhenReached(revision, [reached] { reached->set_value(); });
    future.wait();
  }
  FleetProgress Sent(store::Revision revision) {
    const auto sent = std::make_shared<std::promise<FleetProgress>>();
    auto future = sent->get_future();
    hub_->WhenSent(revision, [sent](FleetProgress progress) { sent->set_value(progress); });
    return future.get();
  }
  static fleet::v1::Hello HelloOf(const std::string& gateway) {
    fleet::v1::Hello hello;
    hello.set_gateway(gateway);
    hello.set_agent_version("1.2");
    return hello;
  }
  void Apply(const std::string& gateway, NodeHub::StreamId id, const types::v1::Push& push) {
    types::v1::PushReport report;
    report.set_nonce(push.nonce());
    report.set_status(types::v1::APPLIED);
    report.set_store_uuid(push.store_uuid());
    report.set_applied_revision(push.revision());
    hub_->OnReport(gateway, id, report);
  }
  void Name(const std::string& gateway, NodeHub::StreamId id,
            const std::vector<std::string>& addresses) {
    fleet::v1::Heartbeat heartbeat;
    heartbeat.set_gateway_connected(true);
    heartbeat.mutable_addresses()->Assign(addresses.begin(), addresses.end());
    hub_->OnHeartbeat(gateway, id, heartbeat);
    statuses_.Flush();
    Reached(Newest());
  }
  store::Revision Newest() { return store_->Range({}).value().revision; }
  types::v1::GatewayState Stored(const std::string& gateway) {
    statuses_.Flush();
    types::v1::Gateway read;
    const auto entry =
        store_->Get(model::KeyOf(model::Part::kStatus, model::NameOf(gateway))).value();
    if (entry.has_value()) model::ReadStatus(entry->value, read);
    return read.status();
  }

  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  std::unique_ptr<FleetFollower> follower_ = std::move(*FleetFollower::Start(*store_));
  StatusWriter statuses_{*store_, std::chrono::milliseconds(1)};
  std::unique_ptr<NodeHub> hub_;
};

TEST_F(NodeHubTest, ChangeReachesTheGatewaysThatItTouches) {
  auto g = std::make_shared<Agent>();
  auto h = std::make_shared<Agent>();
  const auto g_id = hub_->Attach(HelloOf("gateways/g"), g, 0);
  const auto h_id = hub_->Attach(HelloOf("gateways/h"), h, 0);
  Apply("gateways/g", g_id, g->NextPush());
  Apply("gateways/h", h_id, h->NextPush());
  Put(TenantWith("acme"));
  auto pool = PoolWith("acme", "gold", "");
  pool.mutable_spec()->mutable_gateways()->set_all(false);
  pool.mutable_spec()->mutable_gateways()->add_names("gateways/g");
  const store::Revision revision = Put(pool);
  const types::v1::Push push = g->NextPush();
  EXPECT_EQ(push.objects_size(), 2) << "the tenant comes with its first pool";
  FleetProgress progress = Sent(revision);
  EXPECT_EQ(progress.connected, 2u);
  EXPECT_EQ(progress.gateways, 2u);
  EXPECT_EQ(progress.in_sync, 1u) << "h has nothing to do with it";
  Apply("gateways/g", g_id, push);
  EXPECT_EQ(Sent(revision).in_sync, 2u);
}

// A push at once, then one per second.
TEST_F(NodeHubTest, ChangesBeyondThePace_GatherInOnePush) {
  hub_.reset();
  hub_ = std::make_unique<NodeHub>(
      *follower_, statuses_, store_->uuid(),
      NodeHubOptions{.pace = {.per_second = 1, .burst_per_node = 1, .least_burst = 1}});
  auto agent = std::make_shared<Agent>();
  const auto id = hub_->Attach(HelloOf("gateways/g"), agent, 0);
  Apply("gateways/g", id, agent->NextPush());
  Put(TenantWith("acme"));
  Put(PoolWith("acme", "a", ""));
  const types::v1::Push first = agent->NextPush();
  EXPECT_EQ(first.objects_size(), 2);
  Apply("gateways/g", id, first);
  store::Revision last = 0;
  for (const char* name : {"b", "c", "d", "e"}) last = Put(PoolWith("acme", name, ""));
  const FleetProgress progress = Sent(last);
  EXPECT_EQ(progress.connected, 1u);
  EXPECT_EQ(progress.in_sync, 0u) << "what waits is not forgotten";
  const types::v1::Push second = agent->NextPush();
  EXPECT_EQ(second.objects_size(), 5) << "four pools, and their tenant with them";
  // A whole state does not wait.
  auto anew = std::make_shared<Agent>();
  const auto anew_id = hub_->Attach(HelloOf("gateways/g"), anew, 0);
  Apply("gateways/g", anew_id, anew->NextPush());
  EXPECT_EQ(Sent(last).in_sync, 1u);
}

// Peers get the addresses that a push of peers contains.
TEST_F(NodeHubTest, AddressOfAnotherGateway_IsRefusedAndReachesNoPeer) {
  Put(GatewayWith("i"));
  auto g = std::make_shared<Agent>();
  auto h = std::make_shared<Agent>();
  auto i = std::make_shared<Agent>();
  const auto g_id = hub_->Attach(HelloOf("gateways/g"), g, 0);
  const auto h_id = hub_->Attach(HelloOf("gateways/h"), h, 0);
  const auto i_id = hub_->Attach(HelloOf("gateways/i"), i, 0);
  Apply("gateways/i", i_id, i->NextPush());
  Name("gateways/g", g_id, {"192.0.2.1"});
  const auto told = [](const types::v1::Push& push) {
    std::vector<std::string> addresses;
    for (const types::v1::ConfigObject& object : push.objects())
      for (const std::string& address : object.peer().addresses())
        addresses.push_back(object.name() + " " + address);
    return addresses;
  };
  types::v1::Push push = i->NextPush();
  EXPECT_EQ(told(push), std::vector<std::string>{"gateways/g 192.0.2.1"});
  Apply("gateways/i", i_id, push);
  Name("gateways/h", h_id, {"::ffff:192.0.2.1", "192.0.2.2", "nowhere"});
  push = i->NextPush();
  EXPECT_EQ(told(push), std::vector<std::string>{"gateways/h 192.0.2.2"});
  Apply("gateways/i", i_id, push);
  const types::v1::GatewayState refused = Stored("gateways/h");
  ASSERT_EQ(refused.conditions_size(), 1);
  EXPECT_EQ(refused.conditions(0).type(), "AddressesBelieved");
  EXPECT_EQ(refused.conditions(0).reason(), "AddressTaken");
  EXPECT_NE(refused.conditions(0).message().find("gateways/g"), std::string::npos);
  using controllers::AddressRefusal;
  EXPECT_EQ(hub_->refused_addresses(AddressRefusal::kTaken), 1u);
  EXPECT_EQ(hub_->refused_addresses(AddressRefusal::kMalformed), 1u);
  // Repeated claims are counted once.
  Name("gateways/h", h_id, {"192.0.2.1", "192.0.2.2"});
  EXPECT_EQ(hub_->refused_addresses(AddressRefusal::kTaken), 1u);
  EXPECT_EQ(Stored("gateways/g").addresses_size(), 1);
  // A gateway that stops reporting an address releases it to its claimant.
  Name("gateways/g", g_id, {"192.0.2.3"});
  Sent(Newest());
  const types::v1::GatewayState granted = Stored("gateways/h");
  EXPECT_EQ(granted.conditions_size(), 0);
  EXPECT_EQ(granted.addresses_size(), 2);
}

// Two controllers accepted two hosts at once; this one has not heard from its own since it started.
TEST_F(NodeHubTest, SharedAddress_IsTakenFromNobodyWhoHasNotSaidAnything) {
  const auto has = [&](const std::string& id) {
    types::v1::Gateway seen = GatewayWith(id);
    seen.mutable_status()->add_addresses("192.0.2.1");
    store::Transaction write;
    write.then.push_back(store::Operation::Put(
        model::KeyOf(model::Part::kStatus, model::NameOf(seen.name())), seen.SerializeAsString()));
    const store::Revision revision = store_->Txn(std::move(write)).value().revision;
    Reached(revision);
    Sent(revision);
  };
  has("g");
  hub_->Attach(HelloOf("gateways/g"), std::make_shared<Agent>(), 0);
  has("h");
  EXPECT_EQ(Stored("gateways/g").addresses_size(), 1);
}

TEST_F(NodeHubTest, NodeTellsOfItsOwnPoolsOnly_AndNoBooks) {
  Put(TenantWith("acme"));
  auto pool = PoolWith("acme", "gold", "");
  pool.mutable_spec()->mutable_gateways()->set_all(false);
  pool.mutable_spec()->mutable_gateways()->add_names("gateways/g");
  Sent(Put(pool));
  fleet::v1::Heartbeat heartbeat;
  heartbeat.set_gateway_connected(true);
  heartbeat.set_gateway_version(std::string(100000, 'v'));
  types::v1::PoolTotals& told = *heartbeat.add_pools();
  told.set_pool(pool.name());
  told.mutable_totals()->set_qps(7);
  for (int i = 0; i < 1000; ++i) heartbeat.mutable_drain()->add_holders(std::string(1000, 'h'));
  for (const char* gateway : {"gateways/g", "gateways/h"}) {
    const auto id = hub_->Attach(HelloOf(gateway), std::make_shared<Agent>(), 0);
    hub_->OnHeartbeat(gateway, id, heartbeat);
  }
  EXPECT_EQ(hub_->usage().OfPool(pool.name()).totals.qps(), 7u) << "not that of h";
  EXPECT_LT(Stored("gateways/g").ByteSizeLong(), 10000u);
}

TEST_F(NodeHubTest, AddressesAndPools_BeyondTheirNumber_AreNotLookedAt) {
  const auto pool = PoolWith("a", "web", "");
  Put(TenantWith("a"));
  Put(pool);
  const auto id = hub_->Attach(HelloOf("gateways/g"), std::make_shared<Agent>(), 0);
  fleet::v1::Heartbeat heartbeat;
  heartbeat.set_gateway_connected(true);
  for (int i = 0; i < 1000; ++i) heartbeat.add_addresses("192.0.2.1");
  heartbeat.add_addresses("192.0.2.2");
  types::v1::PoolTotals told;
  told.set_pool(pool.name());
  for (uint64_t qps = 1; qps < 100; ++qps) {
    told.mutable_totals()->set_qps(qps);
    *heartbeat.add_pools() = told;
  }
  hub_->OnHeartbeat("gateways/g", id, heartbeat);
  const types::v1::GatewayState state = Stored("gateways/g");
  ASSERT_EQ(state.addresses_size(), 1);
  EXPECT_EQ(state.addresses(0), "192.0.2.1");
  EXPECT_EQ(hub_->usage().OfPool(pool.name()).totals.qps(), 1u);
}

TEST_F(NodeHubTest, StatusTellsWhatTheStreamTells) {
  auto agent = std::make_shared<Agent>();
  const auto id = hub_->Attach(HelloOf("gateways/g"), agent, 1234567);
  fleet::v1::Heartbeat heartbeat;
  heartbeat.set_gateway_connected(true);
  heartbeat.set_gateway_version("0.1");
  heartbeat.add_addresses("192.0.2.1");
  hub_->OnHeartbeat("gateways/g", id, heartbeat);
  const types::v1::Push push = agent->NextPush();
  Apply("gateways/g", id, push);
  types::v1::GatewayState state = Stored("gateways/g");
  EXPECT_TRUE(state.connected());
  EXPECT_EQ(state.agent_version(), "1.2");
  EXPECT_EQ(state.gateway_version(), "0.1");
  ASSERT_EQ(state.addresses_size(), 1);
  EXPECT_EQ(state.applied_revision(), push.revision());
  EXPECT_EQ(state.certificate_expire_time().seconds(), 1234567);
  EXPECT_EQ(state.conditions_size(), 0);
  heartbeat.set_gateway_connected(false);
  hub_->OnHeartbeat("gateways/g", id, heartbeat);
  state = Stored("gateways/g");
  ASSERT_EQ(state.conditions_size(), 1);
  EXPECT_EQ(state.conditions(0).reason(), "AgentCannotReachIt");
  EXPECT_EQ(state.addresses_size(), 1) << "its peers still know it";
  hub_->Detach("gateways/g", id);
  EXPECT_FALSE(Stored("gateways/g").connected());
}

TEST_F(NodeHubTest, HeartbeatsWithoutNews_WriteNothing) {
  auto agent = std::make_shared<Agent>();
  const auto id = hub_->Attach(HelloOf("gateways/g"), agent, 0);
  Apply("gateways/g", id, agent->NextPush());
  fleet::v1::Heartbeat heartbeat;
  heartbeat.set_gateway_connected(true);
  hub_->OnHeartbeat("gateways/g", id, heartbeat);
  statuses_.Flush();
  const auto revision = [&] { return store_->Range({}).value().revision; };
  const store::Revision before = revision();
  for (int i = 0; i < 10; ++i) hub_->OnHeartbeat("gateways/g", id, heartbeat);
  statuses_.Flush();
  EXPECT_EQ(revision(), before);
}

TEST_F(NodeHubTest, SecondStream_EndsTheFirst) {
  auto first = std::make_shared<Agent>();
  auto second = std::make_shared<Agent>();
  const auto first_id = hub_->Attach(HelloOf("gateways/g"), first, 0);
  const auto second_id = hub_->Attach(HelloOf("gateways/g"), second, 0);
  EXPECT_EQ(first->end(), StreamEnd::kSuperseded);
  hub_->Detach("gateways/g", first_id);
  Apply("gateways/g", second_id, second->NextPush());
  EXPECT_TRUE(Stored("gateways/g").connected()) << "the end of the first is not that of the node";
  EXPECT_FALSE(second->end().has_value());
}

TEST_F(NodeHubTest, ReportThatAnswersNothing_EndsTheStream) {
  auto agent = std::make_shared<Agent>();
  const auto id = hub_->Attach(HelloOf("gateways/g"), agent, 0);
  types::v1::PushReport report;
  report.set_nonce("9");
  hub_->OnReport("gateways/g", id, report);
  EXPECT_EQ(agent->end(), StreamEnd::kProtocol);
}

TEST_F(NodeHubTest, AnotherStoresGateway_WaitsForAdoption) {
  auto agent = std::make_shared<Agent>();
  const auto id = hub_->Attach(HelloOf("gateways/g"), agent, 0);
  types::v1::PushReport report;
  report.set_nonce(agent->NextPush().nonce());
  report.set_status(types::v1::UNADOPTED);
  hub_->OnReport("gateways/g", id, report);
  EXPECT_EQ(Stored("gateways/g").conditions(0).type(), "Adopted");
  EXPECT_EQ(hub_->Adopt("gateways/h"), 0u);
  EXPECT_EQ(hub_->Adopt("gateways/-"), 1u);
  const types::v1::Push push = agent->NextPush();
  EXPECT_TRUE(push.adopt());
  Apply("gateways/g", id, push);
  EXPECT_EQ(Stored("gateways/g").conditions_size(), 0);
}

TEST_F(NodeHubTest, WhoSaysThatOurStreamIsGone_IsPutRight) {
  auto agent = std::make_shared<Agent>();
  const auto id = hub_->Attach(HelloOf("gateways/g"), agent, 0);
  Apply("gateways/g", id, agent->NextPush());
  types::v1::Gateway gone;
  *gone.mutable_status() = Stored("gateways/g");
  ASSERT_TRUE(gone.status().connected());
  EXPECT_EQ(gone.status().controller(), "us");
  gone.mutable_status()->set_connected(false);
  store::Transaction write;
  write.then.push_back(store::Operation::Put(
      model::KeyOf(model::Part::kStatus, model::NameOf("gateways/g")), gone.SerializeAsString()));
  Reached(store_->Txn(std::move(write)).value().revision);
  EXPECT_TRUE(Stored("gateways/g").connected());
}

TEST_F(NodeHubTest, Closed_EndsItsStreams) {
  auto agent = std::make_shared<Agent>();
  (void)hub_->Attach(HelloOf("gateways/g"), agent, 0);
  hub_.reset();
  EXPECT_EQ(agent->end(), StreamEnd::kClosing);
}

TEST_F(NodeHubTest, StatusOfAGatewayThatIsGone_MakesNothing) {
  statuses_.Set(model::NameOf("gateways/x"), "bytes");
  statuses_.Set(model::NameOf("gateways/h"), "");
  statuses_.Flush();
  EXPECT_FALSE(store_->Get(model::KeyOf(model::Part::kStatus, model::NameOf("gateways/x")))
                   .value()
                   .has_value());
  EXPECT_TRUE(store_->Get(model::KeyOf(model::Part::kStatus, model::NameOf("gateways/h")))
                  .value()
                  .has_value())
      << "others of the same transaction are written";
}

}  // namespace
}  // namespace rocegw::sync
