// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/cm/route_lookup.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace rocegw::session {
namespace {

const wire::Gid kHere = wire::Gid::FromV4(0x0A000001);
const wire::Gid kThere = wire::Gid::FromV4(0x0A000002);
const wire::Gid kElsewhere = wire::Gid::FromV4(0x0A000003);

class Recent : public ::testing::Test {
 protected:
  RecentSources sources{[this](const wire::Gid& destination, uint32_t) -> StatusOr<wire::Gid> {
    ++asked;
    if (destination == kElsewhere) return Status(ENETUNREACH, "no route");
    return source;
  }};
  int asked = 0;
  wire::Gid source = kHere;
  TimePoint now{1000000000};
};

TEST_F(Recent, Find_AsksOnceInAMoment) {
  EXPECT_EQ(*sources.Find(kThere, 0, now), kHere);
  source = kElsewhere;
  EXPECT_EQ(*sources.Find(kThere, 0, now + Milliseconds(1)), kHere);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(*sources.Find(kThere, 7, now + Milliseconds(1)), kElsewhere) << "another interface";
  EXPECT_EQ(*sources.Find(kThere, 0, now + Milliseconds(100)), kElsewhere) << "the route moved";
  EXPECT_EQ(asked, 3);
}

TEST_F(Recent, Find_NoRoute_IsAskedForAgain) {
  EXPECT_EQ(sources.Find(kElsewhere, 0, now).status().error(), ENETUNREACH);
  EXPECT_EQ(sources.Find(kElsewhere, 0, now).status().error(), ENETUNREACH);
  EXPECT_EQ(asked, 2);
}

TEST_F(Recent, Find_ManyDestinations_AllRight) {
  for (uint32_t i = 0; i < 100; ++i)
    EXPECT_EQ(*sources.Find(wire::Gid::FromV4(0x0B000000 + i), 0, now), kHere);
  EXPECT_EQ(asked, 100);
  (void)sources.Find(wire::Gid::FromV4(0x0B000000), 0, now);
  EXPECT_EQ(asked, 100);
}

TEST_F(Recent, Forget_AsksAnew) {
  (void)sources.Find(kThere, 0, now);
  source = kElsewhere;
  sources.Forget();
  EXPECT_EQ(*sources.Find(kThere, 0, now), kElsewhere);
}

}  // namespace
}  // namespace rocegw::session
