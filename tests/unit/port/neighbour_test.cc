// SPDX-License-Identifier: Apache-2.0
// ARP and neighbour discovery: frames, and the neighbour table.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gateway/port/neighbour/neighbour_cache.h"
#include "gateway/port/neighbour/neighbour_protocol.h"
#include "gateway/port/neighbour/own_neighbours.h"

namespace rocegw::port::neighbour {
namespace {

constexpr MacAddress kOurMac{0x02, 0, 0, 0, 0, 0x01};
constexpr MacAddress kPeerMac{0x02, 0, 0, 0, 0, 0x02};
constexpr MacAddress kOtherMac{0x02, 0, 0, 0, 0, 0x03};
constexpr PoolTag kPool{1};
constexpr PoolTag kOtherPool{2};

wire::Gid V4(uint8_t host) { return wire::Gid::FromV4(0x0A090000U | host); }

wire::Gid V6(uint8_t host) {
  wire::Gid gid;
  gid.bytes = {0x20, 0x01, 0x0D, 0xB8};
  gid.bytes[14] = 0xAB;
  gid.bytes[15] = host;
  return gid;
}

std::vector<uint8_t> FromHex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// Returns the frame that a writer makes.
template <typename Write>
std::vector<uint8_t> Written(Write write) {
  std::vector<uint8_t> bytes(kMaxNeighbourFrame);
  bytes.resize(write(bytes.data()));
  return bytes;
}

class NeighbourProtocol : public ::testing::TestWithParam<bool> {
 protected:
  static wire::Gid Host(uint8_t host) { return GetParam() ? V4(host) : V6(host); }
};
INSTANTIATE_TEST_SUITE_P(Families, NeighbourProtocol, ::testing::Values(true, false),
                         [](const auto& test) { return test.param ? "IPv4" : "IPv6"; });

TEST_P(NeighbourProtocol, Request_ParsesBack) {
  const auto frame =
      Written([](uint8_t* out) { return WriteNeighbourRequest(Host(1), kOurMac, Host(2), out); });
  const auto message = ParseNeighbourMessage(frame);
  ASSERT_TRUE(message);
  EXPECT_TRUE(message->is_request);
  EXPECT_EQ(message->sender, Host(1));
  EXPECT_EQ(message->sender_mac, kOurMac);
  EXPECT_EQ(message->target, Host(2));
  EXPECT_NE(frame[0] & 1, 0) << "to a group";
}

TEST_P(NeighbourProtocol, Answer_ParsesBack) {
  const auto frame = Written(
      [](uint8_t* out) { return WriteNeighbourAnswer(Host(2), kPeerMac, Host(1), kOurMac, out); });
  const auto message = ParseNeighbourMessage(frame);
  ASSERT_TRUE(message);
  EXPECT_FALSE(message->is_request);
  EXPECT_EQ(message->sender_mac, kPeerMac);
  EXPECT_EQ(message->target, Host(2));
  EXPECT_TRUE(std::equal(kOurMac.begin(), kOurMac.end(), frame.begin()));
}

TEST_P(NeighbourProtocol, EveryTruncation_IsRefused) {
  const auto frame =
      Written([](uint8_t* out) { return WriteNeighbourRequest(Host(1), kOurMac, Host(2), out); });
  for (size_t length = 0; length < frame.size(); ++length) {
    const std::vector<uint8_t> shorter(frame.begin(),
                                       frame.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_FALSE(ParseNeighbourMessage(shorter)) << length;
  }
}

TEST(NeighbourProtocol_Arp, RecordedRequestOfLinux) {
  // arping from 192.0.2.9 (02:42:c0:00:02:09) for 192.0.2.1, padded to the Ethernet minimum.
  const auto frame = FromHex(
      "ffffffffffff0242c0000209080600010800060400010242c0000209c0000209000000000000c0000201"
      "000000000000000000000000000000000000");
  const auto message = ParseNeighbourMessage(frame);
  ASSERT_TRUE(message);
  EXPECT_TRUE(message->is_request);
  EXPECT_EQ(message->sender, wire::Gid::FromV4(0xC0000209));
  EXPECT_EQ(message->target, wire::Gid::FromV4(0xC0000201));
}

TEST(NeighbourProtocol_Discovery, WrongHopLimitOrChecksumIsRefused) {
  auto frame =
      Written([](uint8_t* out) { return WriteNeighbourRequest(V6(1), kOurMac, V6(2), out); });
  ASSERT_TRUE(ParseNeighbourMessage(frame));
  frame[14 + 7] = 254;
  EXPECT_FALSE(ParseNeighbourMessage(frame));
  frame[14 + 7] = 255;
  frame[14 + 40 + 8] ^= 1;
  EXPECT_FALSE(ParseNeighbourMessage(frame));
}

TEST(NeighbourProtocol_MulticastMac, FollowsTheRfcs) {
  MacAddress mac{};
  EXPECT_TRUE(MulticastMac(wire::Gid::FromV4(0xE0800102), mac));
  EXPECT_EQ(mac, (MacAddress{0x01, 0x00, 0x5E, 0x00, 0x01, 0x02}));
  wire::Gid group;
  group.bytes = {0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xFF, 0x12, 0x34, 0x56};
  EXPECT_TRUE(MulticastMac(group, mac));
  EXPECT_EQ(mac, (MacAddress{0x33, 0x33, 0xFF, 0x12, 0x34, 0x56}));
  EXPECT_FALSE(MulticastMac(V4(1), mac));
  EXPECT_FALSE(MulticastMac(V6(1), mac));
}

// --- the table
// --------------------------------------------------------------------------------------

StaticNetwork Network() {
  return {.addresses = {{V4(1), 24, false}, {V6(1), 64, false}},
          .router_ipv4 = V4(254),
          .router_ipv6 = {},
          .neighbours = {{V4(77), kOtherMac}}};
}

class OwnNeighboursTest : public ::testing::Test {
 protected:
  OwnNeighboursTest() {
    while (!Next().empty()) {
    }
  }
  std::vector<uint8_t> Next() {
    std::array<uint8_t, LinkLayer::kMaxFrame> frame;
    const size_t length = table_.TakeFrame(frame);
    return {frame.begin(), frame.begin() + static_cast<ptrdiff_t>(length)};
  }
  // A request for our address in the name of `sender`.
  void AskForUs(const wire::Gid& sender) {
    const wire::Gid us = sender.IsV4() ? V4(1) : V6(1);
    table_.HandleFrameAt(now_, Written([&](uint8_t* out) {
                           return WriteNeighbourRequest(sender, kPeerMac, us, out);
                         }));
  }
  Reach Resolve(const wire::Gid& destination) {
    return table_.ResolveAt(now_, destination, kPool, mac_);
  }
  void Answer(const wire::Gid& who, const MacAddress& mac) {
    const wire::Gid us = who.IsV4() ? V4(1) : V6(1);
    table_.HandleFrameAt(now_, Written([&](uint8_t* out) {
                           return WriteNeighbourAnswer(who, mac, us, kOurMac, out);
                         }));
  }

  OwnNeighbours table_{kOurMac, Network()};
  TimePoint now_{Seconds(1000).ns};
  MacAddress mac_{};
};

TEST(OwnNeighbours_Start, AnnouncesItsAddresses) {
  OwnNeighbours table(kOurMac, Network());
  std::array<uint8_t, LinkLayer::kMaxFrame> frame;
  std::vector<wire::Gid> announced;
  while (table.has_frames()) {
    const size_t length = table.TakeFrame(frame);
    const auto message = ParseNeighbourMessage(std::span(frame).first(length));
    ASSERT_TRUE(message);
    EXPECT_EQ(message->sender_mac, kOurMac);
    announced.push_back(message->target);
  }
  EXPECT_EQ(announced, (std::vector<wire::Gid>{V4(1), V6(1)}));
}

TEST_F(OwnNeighboursTest, Resolve_AsksAndLearns) {
  for (const wire::Gid& peer : {V4(2), V6(2)}) {
    EXPECT_EQ(Resolve(peer), Reach::kUnknown);
    const auto asked = ParseNeighbourMessage(Next());
    ASSERT_TRUE(asked);
    EXPECT_TRUE(asked->is_request);
    EXPECT_EQ(asked->target, peer);
    const uint64_t news = table_.news();
    Answer(peer, kPeerMac);
    EXPECT_GT(table_.news(), news);
    EXPECT_EQ(Resolve(peer), Reach::kNeighbour);
    EXPECT_EQ(mac_, kPeerMac);
  }
}

TEST_F(OwnNeighboursTest, Resolve_AsksAgainButNotTooOften) {
  EXPECT_EQ(Resolve(V4(2)), Reach::kUnknown);
  EXPECT_FALSE(Next().empty());
  EXPECT_EQ(Resolve(V4(2)), Reach::kUnknown);
  EXPECT_TRUE(Next().empty());
  now_ = now_ + Milliseconds(150);
  EXPECT_EQ(Resolve(V4(2)), Reach::kUnknown);
  EXPECT_FALSE(Next().empty());
}

TEST_F(OwnNeighboursTest, Resolve_OtherSubnetsThroughTheRouter) {
  const wire::Gid far = wire::Gid::FromV4(0xC0000201);
  EXPECT_EQ(Resolve(far), Reach::kUnknown);
  const auto asked = ParseNeighbourMessage(Next());
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->target, V4(254));
  Answer(V4(254), kPeerMac);
  EXPECT_EQ(Resolve(far), Reach::kNeighbour);
  wire::Gid far6 = V6(2);
  far6.bytes[0] = 0x24;
  EXPECT_EQ(Resolve(far6), Reach::kUnreachable) << "no IPv6 router is configured";
}

TEST_F(OwnNeighboursTest, Resolve_OwnStaticAndGroupAddresses) {
  EXPECT_EQ(Resolve(V4(1)), Reach::kOwn);
  EXPECT_EQ(Resolve(V4(77)), Reach::kNeighbour);
  EXPECT_EQ(mac_, kOtherMac);
  Answer(V4(77), kPeerMac);
  EXPECT_EQ(Resolve(V4(77)), Reach::kNeighbour);
  EXPECT_EQ(mac_, kOtherMac) << "what is configured is not learned over";
  EXPECT_EQ(Resolve(wire::Gid::FromV4(0xE0000001)), Reach::kNeighbour);
  EXPECT_TRUE(Next().empty());
}

TEST_F(OwnNeighboursTest, Request_ForUsIsAnsweredAndLearnedFrom) {
  for (const bool ipv4 : {true, false}) {
    const wire::Gid us = ipv4 ? V4(1) : V6(1);
    const wire::Gid peer = ipv4 ? V4(9) : V6(9);
    table_.HandleFrameAt(now_, Written([&](uint8_t* out) {
                           return WriteNeighbourRequest(peer, kPeerMac, us, out);
                         }));
    const auto answer = ParseNeighbourMessage(Next());
    ASSERT_TRUE(answer);
    EXPECT_FALSE(answer->is_request);
    EXPECT_EQ(answer->target, us);
    EXPECT_EQ(answer->sender_mac, kOurMac);
    EXPECT_EQ(Resolve(peer), Reach::kNeighbour);
    EXPECT_TRUE(Next().empty()) << "no need to ask";
  }
}

TEST_F(OwnNeighboursTest, Request_ForOthersIsIgnored) {
  table_.HandleFrameAt(now_, Written([](uint8_t* out) {
                         return WriteNeighbourRequest(V4(9), kPeerMac, V4(10), out);
                       }));
  EXPECT_TRUE(Next().empty());
  EXPECT_EQ(Resolve(V4(9)), Reach::kUnknown);
}

TEST_F(OwnNeighboursTest, Answer_UnaskedIsNotLearnedAndCannotTakeOurAddress) {
  Answer(V4(33), kPeerMac);
  EXPECT_EQ(Resolve(V4(33)), Reach::kUnknown);
  Answer(V4(1), kPeerMac);
  EXPECT_EQ(Resolve(V4(1)), Reach::kOwn);
}

TEST_F(OwnNeighboursTest, MovedNeighbour_IsFollowed) {
  (void)Resolve(V4(2));
  Answer(V4(2), kPeerMac);
  const uint64_t version = table_.version();
  Answer(V4(2), kPeerMac);
  EXPECT_EQ(table_.version(), version) << "nothing new";
  Answer(V4(2), kOtherMac);
  EXPECT_GT(table_.version(), version);
  EXPECT_EQ(Resolve(V4(2)), Reach::kNeighbour);
  EXPECT_EQ(mac_, kOtherMac);
}

TEST_F(OwnNeighboursTest, OldNeighbour_IsAskedForWhileInUseAndForgottenInTheEnd) {
  (void)Resolve(V4(2));
  (void)Next();
  Answer(V4(2), kPeerMac);
  now_ = now_ + Seconds(31);
  EXPECT_EQ(Resolve(V4(2)), Reach::kNeighbour);
  EXPECT_FALSE(Next().empty());
  now_ = now_ + Seconds(100);
  EXPECT_EQ(Resolve(V4(2)), Reach::kUnknown);
}

TEST_F(OwnNeighboursTest, Tick_MakesQueuesAskAgain) {
  const uint64_t version = table_.version();
  for (int i = 0; i < 10; ++i) table_.Tick();
  EXPECT_GT(table_.version(), version);
}

TEST_F(OwnNeighboursTest, Flood_IsBounded) {
  for (uint32_t i = 0; i < 20000; ++i) {
    (void)Resolve(wire::Gid::FromV4(0x0A090000U | i % 256));
    wire::Gid peer = V6(0);
    peer.bytes[12] = static_cast<uint8_t>(i >> 8);
    peer.bytes[13] = static_cast<uint8_t>(i);
    table_.HandleFrameAt(now_, Written([&](uint8_t* out) {
                           return WriteNeighbourRequest(peer, kPeerMac, V6(1), out);
                         }));
  }
  size_t frames = 0;
  while (!Next().empty()) ++frames;
  EXPECT_LE(frames, 64U);
}

wire::Gid OnLinkV6(uint32_t number) {
  wire::Gid gid = V6(0);
  gid.bytes[11] = static_cast<uint8_t>(number >> 16);
  gid.bytes[12] = static_cast<uint8_t>(number >> 8);
  gid.bytes[13] = static_cast<uint8_t>(number);
  return gid;
}

// Requests in forged names, from our prefixes and from others.
TEST_F(OwnNeighboursTest, RequestsOfStrangers_NeitherFillTheTableNorChangeAnswers) {
  (void)Resolve(V4(2));
  (void)Next();
  Answer(V4(2), kPeerMac);
  const uint64_t version = table_.version();
  const uint64_t news = table_.news();
  for (uint32_t i = 0; i < 5000; ++i) {
    AskForUs(wire::Gid::FromV4(0x01000000U + i));
    AskForUs(OnLinkV6(i));
    while (!Next().empty()) {
    }
  }
  EXPECT_EQ(table_.version(), version) << "no queue looks anew";
  EXPECT_EQ(table_.news(), news);
  EXPECT_EQ(Resolve(V4(2)), Reach::kNeighbour);
  EXPECT_EQ(Resolve(V4(3)), Reach::kUnknown);
  const auto asked = ParseNeighbourMessage(Next());
  ASSERT_TRUE(asked) << "a new peer is asked for";
  EXPECT_EQ(asked->target, V4(3));
  Answer(V4(3), kPeerMac);
  EXPECT_EQ(Resolve(V4(3)), Reach::kNeighbour);
}

TEST_F(OwnNeighboursTest, RequestsOfStrangers_LeaveRoomForOwnRequests) {
  for (uint32_t i = 0; i < 200; ++i) AskForUs(OnLinkV6(i));
  EXPECT_EQ(Resolve(V4(3)), Reach::kUnknown);
  size_t answers = 0;
  std::optional<NeighbourMessage> last;
  while (auto message = ParseNeighbourMessage(Next())) {
    answers += message->is_request ? 0U : 1U;
    last = message;
  }
  EXPECT_EQ(answers, 32U);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->target, V4(3));
}

TEST_F(OwnNeighboursTest, Request_OfAnAskerElsewhereIsAnsweredButNotStored) {
  AskForUs(wire::Gid::FromV4(0x01020304));
  EXPECT_FALSE(Next().empty());
  EXPECT_EQ(Resolve(wire::Gid::FromV4(0x01020304)), Reach::kUnknown) << "it is behind the router";
}

TEST_F(OwnNeighboursTest, AddressScanOfAPool_IsSlowAndLeavesOthersTheirs) {
  (void)Resolve(V4(2));
  (void)Next();
  Answer(V4(2), kPeerMac);
  size_t asked = 0;
  for (uint32_t i = 0; i < 8192; ++i) {
    EXPECT_EQ(table_.ResolveAt(now_, OnLinkV6(i), kOtherPool, mac_), Reach::kUnknown);
    while (!Next().empty()) ++asked;
  }
  EXPECT_LE(asked, 64U);
  EXPECT_EQ(Resolve(V4(2)), Reach::kNeighbour);
  EXPECT_EQ(Resolve(V4(3)), Reach::kUnknown);
  EXPECT_FALSE(Next().empty()) << "another pool's peer is asked for at once";
  now_ = now_ + Milliseconds(1100);
  EXPECT_EQ(table_.ResolveAt(now_, V4(4), kOtherPool, mac_), Reach::kUnknown);
  EXPECT_FALSE(Next().empty()) << "a second later the pool may ask for others";
}

TEST(NeighbourCache_Resolve, AnswersFromMemoryUntilTheVersionMoves) {
  OwnNeighbours table(kOurMac, Network());
  NeighbourCache cache(table);
  MacAddress mac{};
  EXPECT_EQ(cache.Resolve(V4(77), kPool, mac), Reach::kNeighbour);
  EXPECT_EQ(mac, kOtherMac);
  EXPECT_EQ(cache.Resolve(V4(2), kPool, mac), Reach::kUnknown);
  table.HandleFrame(Written(
      [](uint8_t* out) { return WriteNeighbourAnswer(V4(2), kPeerMac, V4(1), kOurMac, out); }));
  EXPECT_EQ(cache.Resolve(V4(2), kPool, mac), Reach::kNeighbour);
  EXPECT_EQ(mac, kPeerMac);
  EXPECT_TRUE(cache.IsOwn(V4(1)));
  EXPECT_FALSE(cache.IsOwn(V4(2)));
}

}  // namespace
}  // namespace rocegw::port::neighbour
