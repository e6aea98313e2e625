// SPDX-License-Identifier: Apache-2.0
// Messages ahead of their turn: those that arrived are kept, missing ones cost nothing.
#include "gateway/transport/message/messages_ahead.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocegw::transport {
namespace {

TEST(MessagesAhead, FarAhead_CostsOne) {
  MessagesAhead messages;
  messages.At(8191).length = 7;
  EXPECT_EQ(messages.count(), 1u);
  EXPECT_EQ(messages.Find(0), nullptr);
  EXPECT_EQ(messages.Find(8190), nullptr);
  ASSERT_NE(messages.Find(8191), nullptr);
  EXPECT_EQ(messages.Find(8191)->length, 7u);
}

TEST(MessagesAhead, Turns_BringThemNearer) {
  MessagesAhead messages;
  for (uint32_t ahead : {0u, 2u, 5u}) messages.At(ahead).length = ahead;
  messages.Advance();
  EXPECT_EQ(messages.Find(0), nullptr);
  EXPECT_EQ(messages.Find(1)->length, 2u);
  EXPECT_EQ(messages.Find(4)->length, 5u);
  messages.Advance();
  messages.Advance();
  EXPECT_EQ(messages.count(), 1u);
}

// Frames that come behind a message's turn do not join the ranges of it that were placed before.
TEST(MessagesAhead, RangesOfMessagesThatTookEffect_MakeRoom) {
  MessagesAhead messages;
  std::vector<ByteRange> pieces;
  uint64_t address = 0;
  for (int message = 0; message < 2000; ++message) {
    for (uint32_t ahead : {0u, 1u}) messages.At(ahead).kind = wire::FrameKind::kWrite;
    for (int range = 0; range < 100; ++range, address += 100)
      ASSERT_TRUE(messages.Place(1, {address, address + 50}, pieces)) << message;
    messages.Advance();
  }
}

TEST(MessagesAhead, ForEachFrom_InOrder) {
  MessagesAhead messages;
  for (uint32_t ahead : {9u, 1u, 4u}) messages.At(ahead).length = ahead;
  std::vector<uint32_t> seen;
  messages.ForEachFrom(2, [&](const IncomingMessage& one) { seen.push_back(one.length); });
  EXPECT_EQ(seen, (std::vector<uint32_t>{4, 9}));
}

TEST(MessagesAhead, ForgetUnfinished_KeepsWhatIsDone) {
  MessagesAhead messages;
  messages.At(1).done = true;
  messages.At(2);
  messages.ForgetUnfinished();
  EXPECT_NE(messages.Find(1), nullptr);
  EXPECT_EQ(messages.Find(2), nullptr);
  EXPECT_FALSE(messages.empty());
}

}  // namespace
}  // namespace rocegw::transport
