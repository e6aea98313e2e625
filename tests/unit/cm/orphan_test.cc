// SPDX-License-Identifier: Apache-2.0
// Connections without an id: how many are kept, and whose make room.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>

#include "gateway/cm/connection/orphans.h"
#include "tests/support/random.h"
#include "tests/unit/cm/cm_host.h"
#include "tests/unit/cm/peer_request.h"

namespace rocegw::cm {
namespace {

using metrics::DropReason;
using testing::AnyV4;
using testing::Host;
using testing::kOtherProgram;
using testing::kPort;
using testing::kProgram;
using testing::RequestOf;
using testing::V4;

constexpr uint16_t kOtherPort = kPort + 1;

CmConfig SmallConfig() {
  CmConfig config;
  config.max_answered_orphans = 8;
  config.max_ending_orphans = 4;
  return config;
}

class OrphanTest : public ::testing::Test {
 protected:
  // Delivers a REQ, and lets the program refuse it. Returns false if the program did not see it.
  bool Refused(const wire::Gid& peer, uint32_t number, uint16_t port = kPort,
               SessionId owner = kProgram) {
    server.now = server.now + Microseconds(1);
    EXPECT_EQ(server.Take(RequestOf(peer, number, port), peer), DropReason::kNone);
    const auto event = server.NextEvent();
    if (!event.has_value()) return false;
    EXPECT_EQ(event->type, EventType::kConnectRequest);
    EXPECT_EQ(server.Do(event->id, Reject{}, owner), 0);
    EXPECT_EQ(server.Do(event->id, DestroyId{}, owner), 0);
    return true;
  }
  // Establishes a connection with an accomplice that answers nothing afterwards, and destroys its
  // id.
  void Abandoned(uint32_t number) {
    ASSERT_EQ(server.Take(RequestOf(V4(9), number), V4(9)), DropReason::kNone);
    const CmHandle id = server.NextEvent()->id;
    ASSERT_EQ(server.Do(id, Accept{Host::Params(0x3000 + number)}), 0);
    ASSERT_EQ(server.Do(id, CommEstablished{}), 0);
    ASSERT_EQ(server.NextEvent()->type, EventType::kEstablished);
    ASSERT_EQ(server.Do(id, DestroyId{}), 0);
  }
  size_t CountIn(const std::string& state) const {
    const auto rows = server.engine().Connections();
    return static_cast<size_t>(
        std::ranges::count_if(rows, [&](const auto& row) { return row.state == state; }));
  }

  Host server{V4(2), 2, SmallConfig()};
};

TEST_F(OrphanTest, RefusedRequests_AreKeptUpToALimit) {
  server.Listening(kPort);
  for (uint32_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(Refused(V4(9), i));
    ASSERT_LE(server.engine().connection_count(), 8u);
  }
  EXPECT_EQ(server.engine().id_count(), 1u);
  // A newer one is answered without the program, an older one is asked again.
  EXPECT_FALSE(Refused(V4(9), 100));
  EXPECT_TRUE(Refused(V4(9), 1));
}

TEST_F(OrphanTest, RefusedRequests_KeepNoOtherProgramFromConnecting) {
  server.Listening(kPort);
  for (uint32_t i = 1; i <= 100; ++i) ASSERT_TRUE(Refused(V4(9), i));
  const CmHandle id = server.Routed(V4(7), kPort);
  EXPECT_EQ(server.Do(id, cm::Connect{Host::Params(0x777)}), 0);
}

TEST_F(OrphanTest, PeerWithManyRefusals_TakesNoAnswerOfAnother) {
  server.Listening(kPort);
  ASSERT_TRUE(Refused(V4(7), 1));
  for (uint32_t i = 1; i <= 100; ++i) ASSERT_TRUE(Refused(V4(9), i));
  EXPECT_FALSE(Refused(V4(7), 1));
}

TEST_F(OrphanTest, PoolWithManyRefusals_TakesNoAnswerOfAnother) {
  server.SetPoolOf([](SessionId owner) { return owner == kOtherProgram ? 2 : 1; });
  server.Listening(kPort);
  const CmHandle other = server.Create(PortSpace::kTcp, QpType::kRc, kOtherProgram);
  ASSERT_EQ(server.Do(other, Bind{AnyV4(kOtherPort)}, kOtherProgram), 0);
  ASSERT_EQ(server.Do(other, Listen{10}, kOtherProgram), 0);
  ASSERT_TRUE(Refused(V4(9), 1, kOtherPort, kOtherProgram));
  ASSERT_TRUE(Refused(V4(9), 2, kOtherPort, kOtherProgram));
  // As many peers as there are places.
  for (uint32_t i = 1; i <= 100; ++i) ASSERT_TRUE(Refused(V4(10 + i % 8), i));
  EXPECT_FALSE(Refused(V4(9), 1, kOtherPort, kOtherProgram));
  EXPECT_FALSE(Refused(V4(9), 2, kOtherPort, kOtherProgram));
}

TEST_F(OrphanTest, Disconnects_HaveALimitOfTheirOwn) {
  server.Listening(kPort);
  for (uint32_t i = 1; i <= 10; ++i) Abandoned(i);
  EXPECT_EQ(CountIn("DREQ sent"), 4u);
  for (uint32_t i = 101; i <= 200; ++i) ASSERT_TRUE(Refused(V4(9), i));
  EXPECT_EQ(CountIn("DREQ sent"), 4u);
  EXPECT_EQ(CountIn("rejected"), 8u);
  // The DREQs are given up, and what is kept ends as before.
  for (int i = 0; i < 600; ++i) server.Advance(Milliseconds(200));
  EXPECT_EQ(server.engine().connection_count(), 0u);
  EXPECT_EQ(server.engine().deadline(), kNever);
}

TEST_F(OrphanTest, AnsweredDatagramRequests_AreKeptUpToTheSameLimit) {
  server.Listening(kPort, 10, PortSpace::kUdp, QpType::kUd);
  for (uint32_t i = 1; i <= 100; ++i) {
    wire::CmSidrReq req;
    req.request_id = i;
    req.service_id = wire::IpServiceId(static_cast<uint16_t>(PortSpace::kUdp), kPort);
    wire::IpCmHeader header;
    header.source = V4(9);
    header.destination = V4(2);
    wire::EncodeIpCm(header, std::span(req.private_data).first<wire::kIpCmHeaderLength>());
    ASSERT_EQ(server.Take(wire::CmMad{i, 0, req}, V4(9)), DropReason::kNone);
    const CmHandle id = server.NextEvent()->id;
    ASSERT_EQ(server.Do(id, Accept{Host::Params(0x222)}), 0);
    ASSERT_EQ(server.Do(id, DestroyId{}), 0);
    ASSERT_LE(server.engine().connection_count(), 8u);
  }
}

// Compares the list with a plain one, in which every count is counted anew.
TEST(Orphans, OldestOfTheGreediestPeer_OfTheGreediestPool_MakesRoom) {
  constexpr size_t kMost = 12;
  Orphans orphans(kMost);
  rocegw::testing::Random random(4);
  std::deque<std::unique_ptr<Connection>> listed;  // oldest first
  const auto count = [&](uint64_t pool, const wire::Gid* peer) {
    return std::ranges::count_if(listed, [&](const auto& one) {
      return one->orphan.pool == pool && (peer == nullptr || one->path.destination == *peer);
    });
  };
  for (int step = 0; step < 20000; ++step) {
    if (!listed.empty() && random.Below(4) == 0) {
      const auto at = listed.begin() + static_cast<int64_t>(random.Below(listed.size()));
      orphans.Remove(**at);
      ASSERT_EQ((*at)->orphan.list, nullptr);
      listed.erase(at);
    } else {
      // Some pools and peers have far more than others.
      auto& added = listed.emplace_back(std::make_unique<Connection>());
      const uint64_t pool = random.Below(1 + random.Below(4));
      added->path.destination = V4(static_cast<uint32_t>(random.Below(1 + random.Below(5))));
      orphans.Add(*added, pool);
    }
    ASSERT_EQ(orphans.size(), listed.size());
    Connection* const excess = orphans.Excess();
    ASSERT_EQ(excess != nullptr, listed.size() > kMost);
    if (excess == nullptr) continue;
    const uint64_t pool = excess->orphan.pool;
    const wire::Gid& peer = excess->path.destination;
    for (const auto& one : listed) {
      ASSERT_LE(count(one->orphan.pool, nullptr), count(pool, nullptr));
      if (one->orphan.pool == pool) {
        ASSERT_LE(count(pool, &one->path.destination), count(pool, &peer));
      }
    }
    const auto at = std::ranges::find_if(listed, [&](const auto& one) {
      return one->orphan.pool == pool && one->path.destination == peer;
    });
    ASSERT_EQ(at->get(), excess);
    orphans.Remove(*excess);
    listed.erase(at);
  }
}

}  // namespace
}  // namespace rocegw::cm
