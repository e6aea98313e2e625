// SPDX-License-Identifier: Apache-2.0
// Discovery of gateways: answers, refusals, silence, restarts, and costs.
#include "gateway/cm/path/discovery.h"

#include <gtest/gtest.h>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

using metrics::DropReason;
using testing::SeededRandom;
using testing::V4;

DiscoveryConfig Enabled() {
  DiscoveryConfig config;
  config.enabled = true;
  return config;
}

GatewaySettings WithChannels(uint8_t workers) {
  GatewaySettings settings;
  settings.workers = workers;
  settings.features = wire::kOptionChannel | wire::kOptionSelectiveAck;
  settings.window = 100000;
  for (uint32_t i = 0; i < workers; ++i) settings.acceptors[i] = Qpn{i << 18 | 0x55};
  return settings;
}

// Gateway with nothing but discovery.
struct Side {
  Side(const wire::Gid& address, uint64_t seed, const DiscoveryConfig& config = Enabled())
      : gid(address), random(seed), discovery(config, random) {
    discovery.SetOwn(WithChannels(2));
  }
  PeerKind Ask(const wire::Gid& peer) { return discovery.Ask(gid, peer, now, actions); }
  DropReason Take(const SendMad& mad) {
    wire::RxMeta meta;
    meta.source = mad.path.source;
    meta.destination = mad.path.destination;
    meta.traffic_class = mad.path.traffic_class;
    return discovery.OnMad(mad.bytes, meta, kGsiQpn, now, actions);
  }
  SendMad Sent() {
    EXPECT_FALSE(actions.mads.empty());
    if (actions.mads.empty()) return {};
    SendMad mad = actions.mads.front();
    actions.mads.erase(actions.mads.begin());
    return mad;
  }
  void Advance(Duration by) {
    now = now + by;
    discovery.OnDeadline(now, actions);
  }

  const wire::Gid gid;
  SeededRandom random;
  Discovery discovery;
  TimePoint now{Seconds(5).ns};
  CmActions actions;
};

class DiscoveryTest : public ::testing::Test {
 protected:
  void Exchange() {
    while (!here.actions.mads.empty() || !there.actions.mads.empty()) {
      if (!here.actions.mads.empty()) there.Take(here.Sent());
      if (!there.actions.mads.empty()) here.Take(there.Sent());
    }
  }
  // Refuses like an RDMA device of Linux.
  void Refuse() {
    const SendMad question = here.Sent();
    SendMad refusal;
    std::swap(refusal.path.source, refusal.path.destination);
    refusal.path.source = question.path.destination;
    refusal.path.destination = question.path.source;
    ASSERT_TRUE(wire::RefuseMad(question.bytes, refusal.bytes));
    ASSERT_EQ(here.Take(refusal), DropReason::kNone);
  }

  Side here{V4(1), 1};
  Side there{V4(2), 2};
};

TEST_F(DiscoveryTest, Answer_MakesAGateway) {
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kUnknown);
  EXPECT_EQ(here.Ask(there.gid), PeerKind::kAsking);
  Exchange();
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kGateway);
  EXPECT_EQ(here.actions.settled, std::vector{there.gid});
  EXPECT_EQ(here.discovery.deadline(), kNever);
  EXPECT_EQ(here.discovery.counters().gateways, 1u);
  EXPECT_EQ(there.discovery.counters().answered, 1u);
  // The other side asks by itself: a question does not prove who asks.
  EXPECT_EQ(there.discovery.KindOf(here.gid), PeerKind::kUnknown);
}

TEST_F(DiscoveryTest, MarkedQuestion_AnswerIsNotMarked) {
  here.Ask(there.gid);
  SendMad question = here.Sent();
  question.path.traffic_class = 0x68 | wire::kEcnCe;
  there.Take(question);
  ASSERT_FALSE(there.actions.mads.empty());
  EXPECT_EQ(there.Sent().path.traffic_class, 0x68);
}

TEST_F(DiscoveryTest, Target_IsTheAcceptorOfTheWorkerThatOwnsTheQp) {
  here.Ask(there.gid);
  Exchange();
  const auto target = here.discovery.TargetOf(there.gid, Qpn{5u << 18 | 77});
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->peer, there.gid);
  EXPECT_EQ(target->peer_worker, 1u);
  EXPECT_EQ(target->acceptor, (Qpn{1u << 18 | 0x55}));
  EXPECT_EQ(target->instance, there.discovery.own().instance);
  EXPECT_EQ(target->window, 100000u);
  EXPECT_EQ(target->features, there.discovery.own().features);
  EXPECT_EQ(here.discovery.TargetOf(there.gid, Qpn{4u << 18})->peer_worker, 0u);
  EXPECT_FALSE(here.discovery.TargetOf(V4(3), Qpn{5}).has_value());
}

TEST_F(DiscoveryTest, GatewayWithoutChannels_IsNoTarget) {
  GatewaySettings settings;
  settings.workers = 2;
  there.discovery.SetOwn(settings);
  here.Ask(there.gid);
  Exchange();
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kGateway);
  EXPECT_EQ(here.discovery.FeaturesOf(there.gid), wire::kOptionPresent);
  EXPECT_FALSE(here.discovery.TargetOf(there.gid, Qpn{5}).has_value());
}

TEST_F(DiscoveryTest, ErrorStatus_MeansRdmaDeviceAtOnce) {
  here.Ask(V4(9));
  Refuse();
  EXPECT_EQ(here.discovery.KindOf(V4(9)), PeerKind::kRnic);
  EXPECT_EQ(here.actions.settled, std::vector{V4(9)});
  EXPECT_EQ(here.discovery.counters().refused, 1u);
  EXPECT_FALSE(here.discovery.TargetOf(V4(9), Qpn{5}).has_value());
}

TEST_F(DiscoveryTest, Silence_MeansRdmaDeviceAfterThreeQueriesIn20ms) {
  here.Ask(V4(9));
  std::vector<int64_t> sent_at;
  const TimePoint start = here.now;
  while (here.discovery.deadline() != kNever) {
    for (; !here.actions.mads.empty(); here.actions.mads.pop_back())
      sent_at.push_back((here.now - start).ns / 1000000);
    EXPECT_EQ(here.discovery.KindOf(V4(9)), PeerKind::kAsking);
    here.Advance(here.discovery.deadline() - here.now);
  }
  EXPECT_EQ(sent_at, (std::vector<int64_t>{0, 5, 15}));
  EXPECT_EQ((here.now - start).ns, Milliseconds(20).ns);
  EXPECT_EQ(here.discovery.KindOf(V4(9)), PeerKind::kRnic);
  EXPECT_EQ(here.actions.settled, std::vector{V4(9)});
  EXPECT_EQ(here.discovery.counters().silent, 1u);
}

// For an address that the fleet calls a gateway, silence is packet loss or a restart.
TEST_F(DiscoveryTest, Member_IsAskedWithMorePatience_AndAgainSoon) {
  here.discovery.SetMember(V4(9), true);
  EXPECT_EQ(here.discovery.KindOf(V4(9)), PeerKind::kUnknown) << "what it can do is not known";
  EXPECT_FALSE(here.discovery.TargetOf(V4(9), Qpn{5}).has_value());
  here.Ask(V4(9));
  const TimePoint start = here.now;
  std::vector<int64_t> sent_at;
  while (here.discovery.deadline() != kNever) {
    for (; !here.actions.mads.empty(); here.actions.mads.pop_back())
      sent_at.push_back((here.now - start).ns / 1000000);
    here.Advance(here.discovery.deadline() - here.now);
  }
  EXPECT_EQ(sent_at, (std::vector<int64_t>{0, 5, 15, 30, 50, 75}));
  EXPECT_EQ((here.now - start).ns, Milliseconds(100).ns);
  EXPECT_EQ(here.discovery.KindOf(V4(9)), PeerKind::kRnic) << "connections go on, natively";
  EXPECT_EQ(here.actions.settled, std::vector{V4(9)});
  here.Advance(Seconds(9));
  EXPECT_EQ(here.Ask(V4(9)), PeerKind::kRnic);
  here.Advance(Seconds(2));
  EXPECT_EQ(here.Ask(V4(9)), PeerKind::kAsking);
}

TEST_F(DiscoveryTest, Member_WhoseFirstAnswersAreLost_IsAGateway) {
  here.discovery.SetMember(there.gid, true);
  here.Ask(there.gid);
  for (int i = 0; i < 5; ++i) {
    here.actions.mads.clear();
    here.Advance(here.discovery.deadline() - here.now);
  }
  Exchange();
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kGateway);
}

TEST_F(DiscoveryTest, Member_ThatRefuses_IsAnRdmaDeviceWhateverTheFleetSays) {
  here.discovery.SetMember(V4(9), true);
  here.Ask(V4(9));
  Refuse();
  here.Advance(Seconds(599));
  EXPECT_EQ(here.Ask(V4(9)), PeerKind::kRnic);
  EXPECT_TRUE(here.actions.mads.empty());
}

TEST_F(DiscoveryTest, MemberSinceItWasAsked_IsAskedAgain) {
  here.Ask(V4(9));
  Refuse();
  here.Advance(Seconds(2));
  here.discovery.SetMember(V4(9), true);
  EXPECT_EQ(here.Ask(V4(9)), PeerKind::kAsking);
  Refuse();
  here.discovery.SetMember(V4(9), true);
  here.Advance(Seconds(5));
  EXPECT_EQ(here.Ask(V4(9)), PeerKind::kRnic) << "it is no news";
  here.discovery.SetMember(V4(9), false);
  EXPECT_TRUE(here.discovery.members().empty());
}

TEST_F(DiscoveryTest, RdmaDevice_IsAskedOnceInTenMinutes) {
  here.Ask(V4(9));
  Refuse();
  here.Advance(Seconds(599));
  EXPECT_EQ(here.Ask(V4(9)), PeerKind::kRnic);
  EXPECT_TRUE(here.actions.mads.empty());
  here.Advance(Seconds(2));
  EXPECT_EQ(here.Ask(V4(9)), PeerKind::kAsking);
  EXPECT_EQ(here.actions.mads.size(), 1u);
}

TEST_F(DiscoveryTest, Gateway_StaysOneWhileItIsAskedAnew) {
  here.Ask(there.gid);
  Exchange();
  here.Advance(Seconds(601));
  EXPECT_EQ(here.Ask(there.gid), PeerKind::kGateway);
  EXPECT_EQ(here.actions.mads.size(), 1u);
  EXPECT_TRUE(here.discovery.TargetOf(there.gid, Qpn{5}).has_value());
  Exchange();
  EXPECT_EQ(here.discovery.counters().gateways, 2u);
}

TEST_F(DiscoveryTest, GatewayThatKeepsSilent_IsAskedAgainSoon) {
  here.Ask(there.gid);
  Exchange();
  here.Advance(Seconds(601));
  here.Ask(there.gid);
  for (int i = 0; i < 4; ++i) here.Advance(Milliseconds(10));
  here.actions.Clear();
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kRnic);
  EXPECT_EQ(here.Ask(there.gid), PeerKind::kRnic);
  here.Advance(Seconds(10));
  EXPECT_EQ(here.Ask(there.gid), PeerKind::kAsking);
}

TEST_F(DiscoveryTest, LateAnswer_CountsButIsNoNews) {
  here.Ask(there.gid);
  there.Take(here.Sent());
  const SendMad answer = there.Sent();
  for (int i = 0; i < 4; ++i) here.Advance(Milliseconds(10));
  here.actions.Clear();
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kRnic);
  EXPECT_EQ(here.Take(answer), DropReason::kNone);
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kGateway);
  EXPECT_TRUE(here.actions.settled.empty());
}

TEST_F(DiscoveryTest, AnswersThatNobodyAskedFor_AreDropped) {
  here.Ask(there.gid);
  there.Take(here.Sent());
  const SendMad answer = there.Sent();
  SendMad forged = answer;
  forged.path.source = V4(3);
  EXPECT_EQ(here.Take(forged), DropReason::k_cm_unmatched);
  forged = answer;
  forged.path.destination = V4(4);
  EXPECT_EQ(here.Take(forged), DropReason::k_cm_unmatched);
  forged = answer;
  forged.bytes[15] ^= 1;
  EXPECT_EQ(here.Take(forged), DropReason::k_cm_unmatched);
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kAsking);
  EXPECT_EQ(here.Take(answer), DropReason::kNone);
  EXPECT_EQ(here.Take(answer), DropReason::k_cm_unmatched) << "once is enough";
}

TEST_F(DiscoveryTest, RestartedPeerThatAsks_IsForgotten) {
  here.Ask(there.gid);
  Exchange();
  Side again(there.gid, 3);
  again.Ask(here.gid);
  here.Take(again.Sent());
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kUnknown);
  EXPECT_FALSE(here.discovery.TargetOf(there.gid, Qpn{5}).has_value());
  here.actions.Clear();
  here.Ask(there.gid);
  again.Take(here.Sent());
  again.actions.mads.erase(again.actions.mads.begin(), again.actions.mads.end() - 1);
  here.Take(again.Sent());
  EXPECT_EQ(here.discovery.TargetOf(there.gid, Qpn{5})->instance, again.discovery.own().instance);
}

TEST_F(DiscoveryTest, ForgottenPeer_IsAskedAgain) {
  here.Ask(there.gid);
  Exchange();
  here.discovery.Forget(there.gid, here.actions);
  EXPECT_FALSE(here.discovery.TargetOf(there.gid, Qpn{5}).has_value());
  EXPECT_EQ(here.Ask(there.gid), PeerKind::kAsking);
  here.discovery.Forget(there.gid, here.actions);  // its answer is in transit
  Exchange();
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kGateway);
  EXPECT_EQ(here.discovery.size(), 1u);
}

TEST_F(DiscoveryTest, DeviceThatTalksLikeAGateway_IsAskedAgainAfterAMoment) {
  here.Ask(there.gid);
  Refuse();
  there.Ask(here.gid);
  const SendMad question = there.Sent();
  for (int i = 0; i < 3; ++i) here.Take(question);
  here.actions.Clear();
  EXPECT_EQ(here.Ask(there.gid), PeerKind::kRnic) << "not at once: anybody can say so";
  here.Advance(Seconds(1));
  EXPECT_EQ(here.Ask(there.gid), PeerKind::kAsking);
}

TEST_F(DiscoveryTest, Disabled_AsksNobodyAndRefuses) {
  Side off(V4(4), 4, {});
  EXPECT_EQ(off.Ask(there.gid), PeerKind::kRnic);
  EXPECT_TRUE(off.actions.mads.empty());
  EXPECT_EQ(off.discovery.size(), 0u);
  here.Ask(off.gid);
  EXPECT_EQ(off.Take(here.Sent()), DropReason::k_mad_unknown_class);
  ASSERT_EQ(off.actions.mads.size(), 1u);
  here.Take(off.Sent());
  EXPECT_EQ(here.discovery.KindOf(off.gid), PeerKind::kRnic);
  EXPECT_EQ(here.discovery.counters().refused, 1u);
}

TEST_F(DiscoveryTest, GatewayOfAnotherVendorId_IsAnRdmaDevice) {
  DiscoveryConfig config = Enabled();
  config.vendor_id = 0x02AAAA;
  Side other(V4(5), 5, config);
  here.Ask(other.gid);
  other.Take(here.Sent());
  here.Take(other.Sent());
  EXPECT_EQ(here.discovery.KindOf(other.gid), PeerKind::kRnic);
}

TEST_F(DiscoveryTest, QuestionsBeyondTheRate_AreDroppedAndCounted) {
  DiscoveryConfig config = Enabled();
  config.answer_rate = 10;
  config.answer_burst = 2;
  Side slow(V4(6), 6, config);
  here.Ask(slow.gid);
  const SendMad question = here.Sent();
  EXPECT_EQ(slow.Take(question), DropReason::kNone);
  EXPECT_EQ(slow.Take(question), DropReason::kNone);
  EXPECT_EQ(slow.Take(question), DropReason::k_mad_rate);
  EXPECT_EQ(slow.discovery.counters().not_answered, 1u);
  EXPECT_EQ(slow.discovery.size(), 0u) << "strangers make no state";
}

// Returns a question of the gateway `there` as some address would send it.
SendMad QuestionFrom(Side& asker, const Side& asked) {
  asker.Ask(asked.gid);
  return asker.Sent();
}

TEST_F(DiscoveryTest, FloodOfOneAddress_LeavesAnswersForOthers) {
  Side flooder(V4(30), 30);
  const SendMad flood = QuestionFrom(flooder, there);
  for (int i = 0; i < 60000; ++i) {
    there.now = there.now + Microseconds(16);
    there.Take(flood);
  }
  EXPECT_LT(there.discovery.counters().answered, 200u);
  there.actions.Clear();
  EXPECT_EQ(there.Take(QuestionFrom(here, there)), DropReason::kNone) << "another stranger";
}

TEST_F(DiscoveryTest, FloodOfManyAddresses_LeavesAnswersForMembers) {
  there.discovery.SetMember(here.gid, true);
  Side flooder(V4(30), 30);
  SendMad flood = QuestionFrom(flooder, there);
  uint64_t dropped = 0;
  for (uint32_t i = 0; i < 60000; ++i) {
    flood.path.source = wire::Gid::FromV4(0x0A000000 + i);
    if (there.Take(flood) != DropReason::kNone) ++dropped;
  }
  EXPECT_GT(dropped, 50000u);
  there.actions.Clear();
  EXPECT_EQ(there.Take(QuestionFrom(here, there)), DropReason::kNone);
}

TEST_F(DiscoveryTest, FloodOfManyAddresses_LeavesAnswersForPeersThatWereAsked) {
  there.Ask(here.gid);
  Side flooder(V4(30), 30);
  SendMad flood = QuestionFrom(flooder, there);
  for (uint32_t i = 0; i < 60000; ++i) {
    flood.path.source = wire::Gid::FromV4(0x0A000000 + i);
    there.Take(flood);
  }
  there.actions.Clear();
  EXPECT_EQ(there.Take(QuestionFrom(here, there)), DropReason::kNone);
}

// Workers are notified once when a peer is asked, and once when it is neither asked nor a gateway
// any more.
TEST_F(DiscoveryTest, Acquaintances_FollowWhatIsKnown) {
  here.Ask(there.gid);
  ASSERT_EQ(here.actions.acquaintances.size(), 1u);
  EXPECT_EQ(here.actions.acquaintances[0].peer, there.gid);
  EXPECT_TRUE(here.actions.acquaintances[0].known);
  here.actions.Clear();
  here.discovery.Forget(there.gid, here.actions);
  EXPECT_TRUE(here.actions.acquaintances.empty()) << "its answer is under way";
  for (int turn = 0; turn < 4; ++turn) here.Advance(Milliseconds(10));
  ASSERT_EQ(here.actions.acquaintances.size(), 1u) << "it keeps silent";
  EXPECT_FALSE(here.actions.acquaintances[0].known);
}

// Silence may be loss: a gateway under a flood, a full queue.
TEST_F(DiscoveryTest, Silence_IsRememberedLongerEachTime) {
  const auto fall_silent = [&] {
    EXPECT_EQ(here.Ask(V4(9)), PeerKind::kAsking);
    for (int turn = 0; turn < 4; ++turn) here.Advance(Milliseconds(10));
    here.actions.Clear();
  };
  for (const int64_t seconds : {10, 20, 40, 80, 160, 320, 600, 600}) {
    fall_silent();
    here.Advance(Seconds(seconds) - Milliseconds(100));
    EXPECT_EQ(here.Ask(V4(9)), PeerKind::kRnic) << seconds;
    here.Advance(Milliseconds(100));
  }
}

TEST_F(DiscoveryTest, Table_IsBoundedAndKeepsGateways) {
  DiscoveryConfig config = Enabled();
  config.max_peers = 3;
  Side small(V4(7), 7, config);
  small.Ask(there.gid);
  there.Take(small.Sent());
  small.Take(there.Sent());
  for (uint32_t i = 20; i < 40; ++i) {
    small.Ask(V4(i));
    for (int turn = 0; turn < 4; ++turn) small.Advance(Milliseconds(10));
    EXPECT_LE(small.discovery.size(), 3u);
  }
  EXPECT_EQ(small.discovery.KindOf(there.gid), PeerKind::kGateway);
  small.Ask(V4(50));
  small.Ask(V4(51));
  EXPECT_EQ(small.Ask(V4(52)), PeerKind::kRnic) << "all others are being asked";
  EXPECT_EQ(small.discovery.counters().table_full, 1u);
}

TEST_F(DiscoveryTest, NewSettings_AreANewEpochOfTheSameInstance) {
  const wire::GatewayInfo before = here.discovery.own();
  here.discovery.SetOwn(WithChannels(4));
  EXPECT_EQ(here.discovery.own().instance, before.instance);
  EXPECT_EQ(here.discovery.own().epoch, before.epoch + 1);
  EXPECT_NE(before.instance, there.discovery.own().instance);
}

// The source of a request may be forged: it must not push out what programs have learned.
TEST_F(DiscoveryTest, Requests_FillAQuarterOfTheTable) {
  DiscoveryConfig config = Enabled();
  config.max_peers = 40;
  Side small(V4(7), 7, config);
  const auto settle = [&] {
    for (int turn = 0; turn < 4; ++turn) small.Advance(Milliseconds(10));
    small.actions.mads.clear();
  };
  for (uint32_t i = 0; i < 30; ++i) small.Ask(V4(100 + i));
  settle();
  const uint64_t asked = small.discovery.counters().asked;
  for (uint32_t i = 0; i < 200; ++i) {
    small.discovery.AskStranger(small.gid, wire::Gid::FromV4(0x0B000000 + i), small.now,
                                small.actions);
    settle();
  }
  EXPECT_EQ(small.discovery.counters().asked, asked + 10) << "and so is what forged ones are sent";
  EXPECT_EQ(small.discovery.counters().table_full, 190u);
  for (uint32_t i = 0; i < 30; ++i)
    EXPECT_EQ(small.discovery.KindOf(V4(100 + i)), PeerKind::kRnic) << i;
  // A program asks all the same, and takes the place of a stranger.
  EXPECT_EQ(small.Ask(V4(200)), PeerKind::kAsking);
  EXPECT_EQ(small.discovery.KindOf(V4(100)), PeerKind::kRnic);
  settle();
  small.Advance(Seconds(20));
  small.discovery.AskStranger(small.gid, V4(201), small.now, small.actions);
  EXPECT_EQ(small.discovery.KindOf(V4(201)), PeerKind::kAsking) << "later there is room";
}

TEST_F(DiscoveryTest, Stranger_ThatAProgramAsksToo_IsNone) {
  DiscoveryConfig config = Enabled();
  config.max_peers = 4;
  Side small(V4(7), 7, config);
  small.discovery.AskStranger(small.gid, V4(100), small.now, small.actions);
  small.Ask(V4(100));
  small.discovery.AskStranger(small.gid, V4(101), small.now, small.actions);
  EXPECT_EQ(small.discovery.KindOf(V4(101)), PeerKind::kAsking);
  small.discovery.AskStranger(small.gid, V4(102), small.now, small.actions);
  EXPECT_EQ(small.discovery.KindOf(V4(102)), PeerKind::kUnknown);
}

}  // namespace
}  // namespace rocegw::cm
