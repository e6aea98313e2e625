// SPDX-License-Identifier: Apache-2.0
// Steps of an object's events beside the waiting records of others.
#include "gateway/session/events/event_channel.h"

#include <gtest/gtest.h>

#include <optional>
#include <span>

#include "tests/support/steps.h"

namespace rocegw::session {
namespace {

constexpr auto kNoneOther = [](std::span<const uint8_t>) {
  return std::optional<EventChannel::Subject>();
};

struct End {
  explicit End(ControlLoop& loop, EventBacklog& backlog) {
    auto pair = MakeEventPair();
    EXPECT_TRUE(pair.ok());
    client = std::move(pair->client);
    channel.emplace(loop, backlog, std::move(pair->ours));
  }
  void Send(EventChannel::Subject subject, uint32_t value, bool once = false) {
    channel->Send(subject, {reinterpret_cast<uint8_t*>(&value), sizeof value}, once);
  }

  UniqueFd client;
  std::optional<EventChannel> channel;
};

// A program may let thousands of records of an object wait, and move another one to and fro.
TEST(EventChannelSteps, RecordsOfOthers_CostAnObjectNothing) {
  ControlLoop loop;
  ASSERT_TRUE(loop.Open().ok());
  EventBacklog backlog;
  End one(loop, backlog), other(loop, backlog);
  for (End* const end : {&one, &other})
    while (end->channel->waiting() == 0) end->Send(9, 7);
  const auto move = [&] {
    for (int i = 0; i < 30; ++i) {
      one.Send(2, 8, true);
      one.channel->MoveWaiting(*other.channel, 2, kNoneOther);
      (void)one.channel->Forget(2);
      other.channel->MoveWaiting(*one.channel, 2, kNoneOther);
      (void)other.channel->Forget(2);
    }
  };
  move();
  const uint64_t few = testing::StepsOf(move);
  EXPECT_GE(few, 300u) << "the code is not counted";
  for (uint32_t i = 0; i < 50000; ++i) one.Send(1, i);
  EXPECT_LT(testing::StepsOf(move), 2 * few);
}

}  // namespace
}  // namespace rocegw::session
