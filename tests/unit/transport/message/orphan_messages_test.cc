// SPDX-License-Identifier: Apache-2.0
// Messages that destroyed members of a group leave: bounded, and forgotten in time.
#include "gateway/transport/endpoint/orphan_messages.h"

#include <gtest/gtest.h>

#include "tests/support/qp/frame_peer.h"

namespace rocegw::testing::orphan_messages {
namespace {

using transport::MessageName;
using transport::OrphanMessages;

class OrphanMessagesTest : public ::testing::Test {
 protected:
  MessageName Name(uint32_t message, uint8_t attempt = 0) {
    return {&carrier, 7, message, attempt};
  }

  ScriptedCarrier carrier;
  ScriptedCarrier other;
  OrphanMessages orphans;
  TimePoint now{Seconds(5).ns};
};

TEST_F(OrphanMessagesTest, Name_IsKnownForItsAttempt_UntilItsTimeIsOver) {
  orphans.Add(Name(1), now);
  EXPECT_TRUE(orphans.Contains(Name(1), now + OrphanMessages::kAge));
  EXPECT_FALSE(orphans.Contains(Name(1, 1), now)) << "the next attempt goes to another member";
  EXPECT_FALSE(orphans.Contains({&other, 7, 1, 0}, now));
  EXPECT_FALSE(orphans.Contains(Name(1), now + OrphanMessages::kAge + Nanoseconds(1)));
  EXPECT_EQ(orphans.size(), 0u);
}

TEST_F(OrphanMessagesTest, MembersThatComeAndGo_LeaveNoMoreThanTheLimit) {
  for (uint32_t i = 0; i < 100 * OrphanMessages::kMost; ++i) orphans.Add(Name(i), now);
  EXPECT_EQ(orphans.size(), OrphanMessages::kMost);
  EXPECT_TRUE(orphans.Contains(Name(100 * OrphanMessages::kMost - 1), now));
  EXPECT_FALSE(orphans.Contains(Name(0), now)) << "the oldest are dropped";
  now = now + OrphanMessages::kAge + Seconds(1);
  EXPECT_FALSE(orphans.Contains(Name(7), now));
  EXPECT_EQ(orphans.size(), 0u) << "also if no further member leaves";
}

TEST_F(OrphanMessagesTest, LostChannel_TakesItsMessagesAlong) {
  orphans.Add(Name(1), now);
  orphans.Add({&other, 7, 1, 0}, now);
  orphans.OnCarrierLost(carrier);
  EXPECT_FALSE(orphans.Contains(Name(1), now));
  EXPECT_TRUE(orphans.Contains({&other, 7, 1, 0}, now));
  orphans.Add(Name(1), now);
  EXPECT_EQ(orphans.size(), 2u);
}

}  // namespace
}  // namespace rocegw::testing::orphan_messages
