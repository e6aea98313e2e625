// SPDX-License-Identifier: Apache-2.0
// Memory kept for connections, and the names that owners give to their ids.
#include <gtest/gtest.h>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

using testing::Exchange;
using testing::Host;
using testing::kPort;
using testing::V4;

int FillUp(CmEngine& engine) {
  int turns = 0;
  while (engine.Refill()) ++turns;
  return turns;
}

TEST(CmKept, RoomIsMadeInTurnsUsedAndMadeAgain) {
  Host host(V4(1), 1);
  EXPECT_FALSE(host.engine().Refill());
  EXPECT_FALSE(host.engine().wants_refill());
  host.engine().Keep(200);
  EXPECT_TRUE(host.engine().wants_refill());
  EXPECT_GT(FillUp(host.engine()), 1) << "not all at once";
  EXPECT_FALSE(host.engine().wants_refill());

  const CmHandle id = host.Routed(V4(2), kPort);
  ASSERT_EQ(host.Do(id, cm::Connect{Host::Params(0x111)}), 0);
  EXPECT_TRUE(host.engine().wants_refill());
  EXPECT_EQ(FillUp(host.engine()), 1);
  // Memory beyond the wanted amount is not kept.
  ASSERT_EQ(host.Do(id, DestroyId{}), 0);
  EXPECT_FALSE(host.engine().wants_refill());
  EXPECT_FALSE(host.engine().Refill());

  host.engine().Keep(0);
  EXPECT_FALSE(host.engine().wants_refill());
  EXPECT_FALSE(host.engine().Refill());
}

TEST(CmKept, AnIdThatGoes_GivesItsRoomBack) {
  Host host(V4(1), 1);
  host.engine().Keep(2);
  (void)FillUp(host.engine());
  const CmHandle id = host.Routed(V4(2), kPort);
  EXPECT_TRUE(host.engine().wants_refill());
  ASSERT_EQ(host.Do(id, DestroyId{}), 0);
  EXPECT_FALSE(host.engine().wants_refill());
}

TEST(CmKept, Names_ComeWithEventsOfTheId_AndOfTheListenerWithRequests) {
  Host client(V4(1), 1);
  Host server(V4(2), 2);
  server.engine().Name(server.Listening(kPort), 17);
  const CmHandle active = client.Routed(server.address, kPort);
  client.engine().Name(active, 23);
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  Exchange(client, server);
  const auto request = server.NextEvent();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->name, 17u);
  server.engine().Name(request->id, 18);
  ASSERT_EQ(server.Do(request->id, Accept{Host::Params(0x222)}), 0);
  Exchange(client, server);
  const auto response = client.NextEvent();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->name, 23u);
  ASSERT_EQ(client.Do(active, Establish{}), 0);
  Exchange(client, server);
  const auto established = server.NextEvent();
  ASSERT_TRUE(established.has_value());
  EXPECT_EQ(established->name, 18u);
  server.engine().Name({12345}, 1);  // unknown handle: no effect
}

}  // namespace
}  // namespace rocegw::cm
