// SPDX-License-Identifier: Apache-2.0
// Discovery between gateways that share a key: forged questions and answers change nothing, and the
// policy decides about peers without a key.
#include <gtest/gtest.h>

#include "gateway/cm/path/discovery.h"
#include "gateway/wire/authentication.h"
#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm::authentication {
namespace {

using metrics::DropReason;
using testing::SeededRandom;
using testing::V4;

constexpr SecretKey kFirst = {1, 2};
constexpr SecretKey kSecond = {3, 4};

FleetKeys Keys(std::initializer_list<SecretKey> keys,
               PeerAuthentication policy = PeerAuthentication::kPreferred) {
  FleetKeys out{.policy = policy};
  for (const SecretKey& key : keys) out.keys[out.count++] = key;
  return out;
}

struct Side {
  Side(const wire::Gid& address, uint64_t seed) : gid(address), random(seed) {
    GatewaySettings settings;
    settings.features = wire::kOptionChannel | wire::kOptionSelectiveAck;
    settings.acceptors[0] = Qpn{0x55};
    discovery.SetOwn(settings);
  }
  DropReason Take(const SendMad& mad) {
    wire::RxMeta meta;
    meta.source = mad.path.source;
    meta.destination = mad.path.destination;
    return discovery.OnMad(mad.bytes, meta, kGsiQpn, now, actions);
  }
  SendMad Sent() {
    EXPECT_FALSE(actions.mads.empty());
    if (actions.mads.empty()) return {};
    SendMad mad = actions.mads.front();
    actions.mads.erase(actions.mads.begin());
    return mad;
  }
  static DiscoveryConfig Enabled() {
    DiscoveryConfig config;
    config.enabled = true;
    return config;
  }

  const wire::Gid gid;
  SeededRandom random;
  Discovery discovery{Enabled(), random};
  TimePoint now{Seconds(5).ns};
  CmActions actions;
};

class DiscoveryAuthenticationTest : public ::testing::Test {
 protected:
  void Give(const FleetKeys& to_here, const FleetKeys& to_there) {
    here.discovery.SetKeys(to_here);
    there.discovery.SetKeys(to_there);
  }
  void Ask() {
    here.discovery.Ask(here.gid, there.gid, here.now, here.actions);
    while (!here.actions.mads.empty() || !there.actions.mads.empty()) {
      if (!here.actions.mads.empty()) there.Take(here.Sent());
      if (!there.actions.mads.empty()) here.Take(there.Sent());
    }
  }
  bool HasTarget() const { return here.discovery.TargetOf(there.gid, Qpn{0x66}).has_value(); }
  bool Authenticated() const {
    return (here.discovery.FeaturesOf(there.gid) & wire::kOptionAuthentication) != 0;
  }

  Side here{V4(1), 1};
  Side there{V4(2), 2};
};

TEST_F(DiscoveryAuthenticationTest, BothHaveTheKey_PeerIsAuthenticated) {
  Give(Keys({kFirst}), Keys({kSecond, kFirst}));
  Ask();
  EXPECT_FALSE(Authenticated()) << "tagged with a key that is not known here";
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kAsking);
  Give(Keys({kFirst, kSecond}), Keys({kSecond, kFirst}));
  here.discovery.OnDeadline(here.now + Milliseconds(6), here.actions);
  there.Take(here.Sent());
  EXPECT_EQ(here.Take(there.Sent()), DropReason::kNone);
  EXPECT_TRUE(Authenticated());
  EXPECT_TRUE(HasTarget());
  EXPECT_FALSE(here.discovery.IsUnauthenticated(there.gid));
  EXPECT_EQ(here.discovery.counters().unauthenticated, 0u);
}

TEST_F(DiscoveryAuthenticationTest, Preferred_PeerWithoutKey_IsServedAndCounted) {
  Give(Keys({kFirst}), {});
  Ask();
  EXPECT_TRUE(HasTarget());
  EXPECT_FALSE(Authenticated());
  EXPECT_TRUE(here.discovery.IsUnauthenticated(there.gid));
  EXPECT_EQ(here.discovery.counters().unauthenticated, 1u);
}

TEST_F(DiscoveryAuthenticationTest, GatewayWithoutKey_ServesOneThatHasOne) {
  Give({}, Keys({kFirst}));
  Ask();
  EXPECT_TRUE(HasTarget());
  EXPECT_FALSE(Authenticated());
  EXPECT_FALSE(here.discovery.IsUnauthenticated(there.gid)) << "nothing to compare with";
}

TEST_F(DiscoveryAuthenticationTest, Required_PeerWithoutKey_IsNotAnsweredAndNoTarget) {
  Give(Keys({kFirst}, PeerAuthentication::kRequired), {});
  here.discovery.Ask(here.gid, there.gid, here.now, here.actions);
  there.Take(here.Sent());
  EXPECT_EQ(here.Take(there.Sent()), DropReason::k_mad_no_tag);
  EXPECT_FALSE(HasTarget());
  // Its own question.
  there.discovery.Ask(there.gid, here.gid, there.now, there.actions);
  EXPECT_EQ(here.Take(there.Sent()), DropReason::k_mad_no_tag);
  EXPECT_TRUE(here.actions.mads.empty());
}

TEST_F(DiscoveryAuthenticationTest, Required_RdmaDevice_IsOneAtOnce) {
  here.discovery.SetKeys(Keys({kFirst}, PeerAuthentication::kRequired));
  here.discovery.Ask(here.gid, V4(9), here.now, here.actions);
  SendMad question = here.Sent();
  SendMad refusal = question;
  ASSERT_TRUE(wire::RefuseMad(question.bytes, refusal.bytes));
  std::swap(refusal.path.source, refusal.path.destination);
  EXPECT_EQ(here.Take(refusal), DropReason::kNone);
  EXPECT_EQ(here.discovery.KindOf(V4(9)), PeerKind::kRnic);
}

TEST_F(DiscoveryAuthenticationTest, ForgedAnswer_ChangesNothing) {
  Give(Keys({kFirst}), Keys({kFirst}));
  here.discovery.Ask(here.gid, there.gid, here.now, here.actions);
  there.Take(here.Sent());
  SendMad answer = there.Sent();
  SendMad forged = answer;
  forged.bytes[47] ^= 1;  // another instance
  EXPECT_EQ(here.Take(forged), DropReason::k_mad_tag);
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kAsking);
  EXPECT_EQ(here.Take(answer), DropReason::kNone);
  EXPECT_TRUE(Authenticated());
}

TEST_F(DiscoveryAuthenticationTest, ForgedQuestions_MakeNothingForgotten) {
  Give(Keys({kFirst}), Keys({kFirst}));
  Ask();
  // MAD of another instance: once with a wrong tag, once without any.
  there.discovery.Ask(there.gid, here.gid, there.now, there.actions);
  SendMad question = there.Sent();
  question.bytes[47] ^= 1;
  EXPECT_EQ(here.Take(question), DropReason::k_mad_tag);
  question.bytes[wire::kMadTaggedAt] = 0;
  EXPECT_EQ(here.Take(question), DropReason::kNone);
  EXPECT_EQ(here.discovery.KindOf(there.gid), PeerKind::kGateway);
}

TEST_F(DiscoveryAuthenticationTest, Off_SendsNoTags) {
  Give(Keys({kFirst}, PeerAuthentication::kOff), {});
  here.discovery.Ask(here.gid, there.gid, here.now, here.actions);
  const SendMad question = here.Sent();
  EXPECT_EQ(question.bytes[wire::kMadTaggedAt], 0);
  EXPECT_EQ(here.discovery.own().features & wire::kOptionAuthentication, 0u);
}

// The bytes that an earlier version reads are the same with and without a tag.
TEST_F(DiscoveryAuthenticationTest, EarlierVersion_ReadsTheSame) {
  here.discovery.Ask(here.gid, there.gid, here.now, here.actions);
  const SendMad plain = here.Sent();
  here.discovery.SetKeys(Keys({kFirst}));
  here.discovery.OnDeadline(here.now + Milliseconds(6), here.actions);
  const SendMad tagged = here.Sent();
  for (size_t at = 0; at < plain.bytes.size(); ++at) {
    const bool of_tag = at == wire::kMadTaggedAt || (at >= 20 && at < 24) || at >= 252;
    const bool of_info = at >= 48 && at < 56;  // epoch and options
    if (of_tag || of_info) continue;
    EXPECT_EQ(tagged.bytes[at], plain.bytes[at]) << at;
  }
}

}  // namespace
}  // namespace rocegw::cm::authentication
