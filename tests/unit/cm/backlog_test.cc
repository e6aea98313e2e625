// SPDX-License-Identifier: Apache-2.0
// Requests that a listener's program has not fetched: strangers cannot make more of them than the
// backlog allows, nor speak for another peer.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/cm/cm_host.h"
#include "tests/unit/cm/peer_request.h"

namespace rocegw::cm {
namespace {

using metrics::DropReason;
using testing::Host;
using testing::kPort;
using testing::RequestOf;
using testing::V4;

const wire::Gid kPeer = V4(9);
constexpr uint32_t kBacklog = 4;

// Returns the REJ by which the peer gives up its REQ with this number.
wire::CmMad GivesUp(const wire::Gid& peer, uint32_t number) {
  wire::CmRej rej;
  rej.local_comm_id = number;
  rej.answered = wire::CmAnswered::kOther;
  rej.reason = wire::RejectReason::kTimeout;
  rej.info_length = sizeof(uint64_t);
  rej.info[7] = peer.bytes[15];  // CA GUID of RequestOf
  return {number, 0, rej};
}

class BacklogTest : public ::testing::Test {
 protected:
  // Returns the number of requests that the program was told of so far.
  size_t Requests() const {
    return static_cast<size_t>(
        std::ranges::count(server.actions.events, EventType::kConnectRequest, &CmEvent::type));
  }

  Host server{V4(2), 2};
  CmHandle listener = server.Listening(kPort, kBacklog);
};

TEST_F(BacklogTest, WithdrawnRequest_KeepsItsPlace_UntilTheProgramFetchesIt) {
  for (uint32_t number = 1; number <= 100; ++number) {
    (void)server.Take(RequestOf(kPeer, number), kPeer);
    (void)server.Take(GivesUp(kPeer, number), kPeer);
  }
  EXPECT_EQ(Requests(), kBacklog);
  EXPECT_EQ(server.engine().id_count(), kBacklog + 1);
  const CmHandle first = server.NextEvent()->id;
  ASSERT_EQ(server.Do(first, RequestFetched{}), 0);
  EXPECT_EQ(server.Take(RequestOf(kPeer, 101), kPeer), DropReason::kNone);
  EXPECT_EQ(server.Take(RequestOf(kPeer, 102), kPeer), DropReason::k_cm_backlog);
}

TEST_F(BacklogTest, WithdrawnRequest_ThatIsDestroyed_FreesItsPlaceOnce) {
  (void)server.Take(RequestOf(kPeer, 1), kPeer);
  (void)server.Take(GivesUp(kPeer, 1), kPeer);
  const CmHandle first = server.NextEvent()->id;
  for (uint32_t number = 2; number <= kBacklog; ++number)
    ASSERT_EQ(server.Take(RequestOf(kPeer, number), kPeer), DropReason::kNone);
  ASSERT_EQ(server.Do(first, RequestFetched{}), 0);
  ASSERT_EQ(server.Do(first, DestroyId{}), 0);
  EXPECT_EQ(server.Take(RequestOf(kPeer, 11), kPeer), DropReason::kNone);
  EXPECT_EQ(server.Take(RequestOf(kPeer, 12), kPeer), DropReason::k_cm_backlog);
}

TEST_F(BacklogTest, RequestsThatMakeEachOtherStale_KeepTheirPlaces) {
  for (uint32_t number = 1; number <= 100; ++number) {
    wire::CmMad request = RequestOf(kPeer, number);
    std::get<wire::CmReq>(request.body).local_qpn = Qpn{0x1000};
    (void)server.Take(request, kPeer);
  }
  EXPECT_EQ(Requests(), kBacklog);
  EXPECT_EQ(server.engine().id_count(), kBacklog + 1);
}

TEST_F(BacklogTest, EndOfTheListener_EndsWithdrawnRequests) {
  (void)server.Take(RequestOf(kPeer, 1), kPeer);
  (void)server.Take(GivesUp(kPeer, 1), kPeer);
  ASSERT_EQ(server.Do(listener, DestroyId{}), 0);
  EXPECT_EQ(server.engine().id_count(), 0u);
}

TEST_F(BacklogTest, RequestInAnothersName_NeitherHidesNorEndsThatOfTheOther) {
  const wire::Gid other = V4(10);
  wire::CmMad forged = RequestOf(kPeer, 1);
  std::get<wire::CmReq>(forged.body).local_ca_guid = other.bytes[15];
  ASSERT_EQ(server.Take(forged, kPeer), DropReason::kNone);
  ASSERT_EQ(server.Take(RequestOf(other, 1), other), DropReason::kNone);
  EXPECT_EQ(Requests(), 2u);
  ASSERT_EQ(server.Take(GivesUp(other, 1), other), DropReason::kNone);
  EXPECT_EQ(server.actions.events.back().type, EventType::kRejected);
  EXPECT_EQ(server.actions.events.back().info.destination_gid, other);
}

TEST_F(BacklogTest, EarlyRequestInAnothersName_DoesNotHideThatOfTheOther) {
  constexpr uint16_t kLate = kPort + 1;
  const wire::Gid other = V4(10);
  wire::CmMad forged = RequestOf(kPeer, 1, kLate);
  std::get<wire::CmReq>(forged.body).local_ca_guid = other.bytes[15];
  ASSERT_EQ(server.Take(forged, kPeer), DropReason::kNone);
  ASSERT_EQ(server.Take(RequestOf(other, 1, kLate), other), DropReason::kNone);
  server.Listening(kLate, kBacklog);
  ASSERT_EQ(Requests(), 2u);
  EXPECT_EQ(server.actions.events.back().info.destination_gid, other);
}

// Among sources with equally many early requests, the one whose request is the oldest makes room.
TEST_F(BacklogTest, EarlyRequestsFromEverywhere_LeaveInTheOrderInWhichTheyCame) {
  constexpr uint16_t kLate = kPort + 1;
  const auto from = [](uint32_t number) { return wire::Gid::FromV4(0x0A000000 + number); };
  for (uint32_t number = 1; number <= 256; ++number)
    (void)server.Take(RequestOf(from(number), number, kLate), from(number));
  EXPECT_FALSE(server.NextMad().has_value());
  for (uint32_t number = 1; number <= 3; ++number) {
    (void)server.Take(RequestOf(from(1000 - number), 1000, kLate), from(1000 - number));
    EXPECT_EQ(server.Next<wire::CmRej>()->remote_comm_id, number);
  }
}

TEST_F(BacklogTest, Member_BesideStrangerInAFlood_IsAnswered) {
  const wire::Gid member = V4(3);
  server.engine().SetMember(member, true);
  wire::CmDreq dreq;
  for (uint32_t i = 0; i < 2000; ++i) {
    dreq.local_comm_id = i;
    (void)server.Take(wire::CmMad{1, 0, dreq}, V4(10 + i % 200));
  }
  EXPECT_EQ(server.Take(wire::CmMad{1, 0, dreq}, V4(250)), DropReason::k_mad_rate);
  server.actions.mads.clear();
  EXPECT_EQ(server.Take(wire::CmMad{1, 0, dreq}, member), DropReason::k_cm_unmatched);
  EXPECT_TRUE(server.Next<wire::CmDrep>().has_value());
}

}  // namespace
}  // namespace rocegw::cm
