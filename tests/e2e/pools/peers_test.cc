// SPDX-License-Identifier: Apache-2.0
// Allowed peers of a pool that are fewer from one push to the next, under ordinary programs that
// talk to those who are not allowed any more.
#include <algorithm>
#include <map>

#include "tests/e2e/pools/two_gateways.h"

namespace rocegw::testing {
namespace {

class PeersE2e : public TwoGateways {
 protected:
  // All that is configured, with these allowed peers of blue's pool.
  void PushPeers(const std::string& prefix) {
    gateway::v1::GetConfigResponse config;
    ASSERT_TRUE(config_->GetConfig(Soon().get(), {}, &config).ok());
    gateway::v1::ApplyRequest request;
    types::v1::Push& push = *request.mutable_push();
    push.set_store_uuid("11111111-1111-4111-8111-111111111111");
    push.set_revision(++revision_);
    push.set_full(true);
    push.add_objects()->set_name("gateways/host-a");
    push.mutable_objects(0)->mutable_gateway()->set_name("gateways/host-a");
    for (const types::v1::ConfigObject& known : config.objects()) {
      if (known.has_gateway()) continue;
      types::v1::ConfigObject& object = *push.add_objects();
      object = known;
      if (object.name() != kBlue) continue;
      auto& peers = *object.mutable_pool()->mutable_spec()->mutable_allowed_peers();
      peers.Clear();
      *peers.Add() = prefix;
    }
    gateway::v1::ApplyResponse response;
    ASSERT_TRUE(config_->Apply(Soon().get(), request, &response).ok());
    ASSERT_EQ(response.report().rejections_size(), 0) << response.report().ShortDebugString();
  }
  // "1 of 1 answered": a program beside the other gateway reaches the one that serves in blue's
  // pool here.
  std::string ConnectBack() {
    const NetworkNamespace::Inside inside(*there_);
    HeldProgram program(std::string(ROCEGW_RUN) + " --socket " +
                            File("there/run/a/22222222/0/attach.sock") +
                            " -- " PEER_PROBE " connect 10.9.0.1 7005 1 2>&1",
                        File("back" + std::to_string(++programs_)));
    return program.Line();
  }
  size_t Ready() const {
    const auto qps = Qps();
    return static_cast<size_t>(
        std::ranges::count(qps, types::v1::RTS, &types::v1::QueuePair::state));
  }

  static constexpr char kBlue[] = "tenants/blue/pools/big";
  int64_t revision_ = 0;
};

TEST_F(PeersE2e, PeerThatIsNotAllowedAnyMore_IsCutOff) {
  auto red = Connect("red", 1);
  ASSERT_EQ(red->Line(), "1 of 1 answered");
  auto blue = Connect("blue", 2);
  ASSERT_EQ(blue->Line(), "2 of 2 answered");
  std::optional<HeldProgram> listener;
  {
    const NetworkNamespace::Inside inside(*space_);
    listener.emplace(Command("blue", "serve 10.9.0.1 7005", PEER_PROBE), File("listener"));
  }
  ASSERT_EQ(listener->Line(), "listening");
  EXPECT_EQ(Ready(), 3u);

  PushPeers("10.9.0.0/24");
  EXPECT_EQ(Ready(), 3u) << "all of them are in there";
  EXPECT_EQ(Refused(kBlue, "allowed_peers"), 0u);
  PushPeers("10.9.0.128/25");

  // Both connections: an event each of the connection manager and of the queue pair, and two
  // receives that were posted.
  std::map<std::string, int> lines;
  int flushed = 0;
  for (int i = 0; i < 6; ++i) {
    const std::string line = blue->Line();
    if (std::sscanf(line.c_str(), "flushed %d", &flushed) == 1) {
      lines["flushed"] += flushed;
    } else {
      ++lines[line];
    }
  }
  EXPECT_EQ(lines, (std::map<std::string, int>{
                       {"event DISCONNECTED", 2}, {"async QP_FATAL", 2}, {"flushed", 4}}));
  EXPECT_EQ(servers_["blue"]->Line(), "event DISCONNECTED") << "so the peer learns of it";
  EXPECT_EQ(Refused(kBlue, "allowed_peers"), 2u);
  gateway::v1::ListEventsResponse events;
  ASSERT_TRUE(state_->ListEvents(Soon().get(), {}, &events).ok());
  const auto told = std::ranges::find_if(
      events.events(), [](const auto& event) { return event.reason() == "PEER_NOT_ALLOWED"; });
  ASSERT_NE(told, events.events().end());
  EXPECT_EQ(told->object(), kBlue);
  EXPECT_EQ(told->message(),
            "tenants/blue/pools/big: its programs may not talk to 10.9.0.3 any more "
            "(allowed_peers); queue pairs that failed: 2");

  // The other pool goes on, nothing new comes about, and who listens does so still.
  EXPECT_EQ(Ready(), 1u);
  EXPECT_EQ(Refused("tenants/red/pools/small", "allowed_peers"), 0u);
  EXPECT_EQ(Connect("blue", 1)->Line(), "0 of 1 answered");
  EXPECT_EQ(ConnectBack(), "0 of 1 answered");
  PushPeers("10.9.0.3/32");
  EXPECT_EQ(ConnectBack(), "1 of 1 answered");
}

}  // namespace
}  // namespace rocegw::testing
