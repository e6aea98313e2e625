// SPDX-License-Identifier: Apache-2.0
// State of one message that arrives on a channel.
#include "gateway/transport/message/incoming_message.h"

#include <gtest/gtest.h>

namespace rocegw::testing::incoming_message {
namespace {

using transport::IncomingMessage;

IncomingMessage WriteOf(uint32_t length) {
  IncomingMessage message;
  message.Begin({.kind = wire::FrameKind::kWrite, .length = length});
  return message;
}

TEST(IncomingMessage, NothingHasCome_IsNotSeen) {
  IncomingMessage message;
  EXPECT_FALSE(message.seen());
  EXPECT_FALSE(message.whole());
}

TEST(IncomingMessage, LengthZero_WholeWithItsFirstFrame) {
  EXPECT_TRUE(WriteOf(0).whole());
  EXPECT_FALSE(WriteOf(1).whole());
  IncomingMessage read;
  read.Begin({.kind = wire::FrameKind::kReadRequest, .length = 4096});
  EXPECT_TRUE(read.whole()) << "its length is what it asks for";
}

TEST(IncomingMessage, WhatItTakesAReceiveFor) {
  IncomingMessage message = WriteOf(4);
  EXPECT_FALSE(message.takes_receive());
  message.flags = wire::kFrameImmediate;
  EXPECT_TRUE(message.takes_receive());
  message.Begin({.kind = wire::FrameKind::kSend});
  EXPECT_TRUE(message.takes_receive());
}

TEST(IncomingMessage, LastIsTheFrames_NotTheMessages) {
  IncomingMessage message;
  message.Begin(
      {.kind = wire::FrameKind::kSend, .flags = wire::kFrameLast | wire::kFrameSolicited});
  EXPECT_EQ(message.flags, wire::kFrameSolicited);
}

}  // namespace
}  // namespace rocegw::testing::incoming_message
