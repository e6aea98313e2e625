// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/events/event_channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <optional>

namespace rocegw::session {
namespace {

class Channel : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loop.Open().ok());
    auto pair = MakeEventPair();
    ASSERT_TRUE(pair.ok());
    client = std::move(pair->client);
    channel = std::make_unique<EventChannel>(loop, backlog, std::move(pair->ours));
  }
  void Send(EventChannel::Subject subject, uint32_t value, bool once = false) {
    channel->Send(subject, {reinterpret_cast<uint8_t*>(&value), sizeof value}, once);
  }
  int64_t Read() {
    uint32_t value = 0;
    return ::recv(client.get(), &value, sizeof value, MSG_DONTWAIT) == sizeof value ? int64_t{value}
                                                                                    : -1;
  }

  ControlLoop loop;
  EventBacklog backlog;
  UniqueFd client;
  std::unique_ptr<EventChannel> channel;
};

TEST_F(Channel, MoreThanASocketHolds_AllArriveInOrder) {
  constexpr uint32_t kRecords = 2000;
  for (uint32_t i = 0; i < kRecords; ++i) Send(1 + i % 3, i);
  EXPECT_GT(channel->waiting(), 0u);
  for (uint32_t i = 0; i < kRecords; ++i) {
    int64_t value = Read();
    if (value < 0) {
      loop.RunOnce({});
      value = Read();
    }
    ASSERT_EQ(value, static_cast<int64_t>(i));
  }
  EXPECT_EQ(Read(), -1);
  EXPECT_EQ(channel->Forget(1) + channel->Forget(2) + channel->Forget(3), kRecords);
}

TEST_F(Channel, Forget_WithdrawsWhatTheClientCannotReadYet) {
  uint32_t sent = 0;
  while (channel->waiting() == 0) Send(1, sent++);
  Send(2, 1000000);
  EXPECT_EQ(channel->Forget(1), sent - 1);
  for (uint32_t i = 0; i < sent - 1; ++i) ASSERT_EQ(Read(), static_cast<int64_t>(i));
  loop.RunOnce({});
  EXPECT_EQ(Read(), 1000000);
  EXPECT_EQ(channel->Forget(1), 0u);
  EXPECT_EQ(channel->Forget(2), 1u);
}

TEST_F(Channel, Forget_WithdrawsOnesOwnAndOnlyThose) {
  while (channel->waiting() == 0) Send(1, 7);
  Send(2, 8);
  EXPECT_EQ(channel->Forget(3), 0u);
  EXPECT_EQ(channel->waiting(), 2u);
  EXPECT_EQ(channel->Forget(2), 0u) << "nobody could read it";
  EXPECT_EQ(channel->waiting(), 1u);
  Send(2, 9);
  (void)channel->Forget(1);
  EXPECT_EQ(channel->waiting(), 1u);
}

TEST_F(Channel, Once_EqualRecordsThatWaitAreOne) {
  while (channel->waiting() == 0) Send(1, 7);
  for (int i = 0; i < 100; ++i) Send(2, 8, true);
  EXPECT_EQ(channel->waiting(), 2u);
  Send(2, 9, true);
  EXPECT_EQ(channel->waiting(), 3u);
}

TEST_F(Channel, ClientClosedItsEnd_RecordsGoNowhere) {
  while (channel->waiting() == 0) Send(1, 7);
  client.Reset();
  loop.RunOnce({});
  EXPECT_EQ(channel->waiting(), 0u);
  Send(1, 8);
  EXPECT_EQ(channel->waiting(), 0u);
}

std::optional<EventChannel::Subject> NoneOther(std::span<const uint8_t>) { return std::nullopt; }

TEST_F(Channel, MoveWaiting_TakesOnesRecordsElsewhere) {
  while (channel->waiting() == 0) Send(1, 7);
  Send(2, 20);
  Send(1, 8);
  Send(2, 21);
  auto pair = MakeEventPair();
  EventChannel other(loop, backlog, std::move(pair->ours));
  channel->MoveWaiting(other, 2, NoneOther);
  EXPECT_EQ(channel->waiting(), 2u);
  client = std::move(pair->client);
  EXPECT_EQ(Read(), 20);
  EXPECT_EQ(Read(), 21);
  EXPECT_EQ(Read(), -1);
}

// Values of records are a thousand times their subject plus a number.
EventChannel::Subject SubjectOf(std::span<const uint8_t> record) {
  uint32_t value = 0;
  std::memcpy(&value, record.data(), sizeof value);
  return value / 1000;
}

TEST_F(Channel, TakeBack_WhatIsUnreadMovesInOrder_AndOthersStay) {
  Send(1, 1000);
  Send(2, 2000);
  EXPECT_EQ(Read(), 1000);
  uint32_t sent = 1;
  while (channel->waiting() < 10) Send(1 + sent % 2, 1000 * (1 + sent % 2) + sent), ++sent;
  auto pair = MakeEventPair();
  EventChannel other(loop, backlog, std::move(pair->ours));
  channel->Hold();
  channel->TakeBack(session::EventChannel::ReadUnread(client.get()), SubjectOf);
  EXPECT_EQ(Read(), -1);
  channel->MoveWaiting(other, 1, NoneOther);
  const auto read_all = [&](EventChannel::Subject subject, uint32_t at) {
    for (; at < sent; at += 2) {
      int64_t value = Read();
      if (value < 0) {
        loop.RunOnce({});
        value = Read();
      }
      ASSERT_EQ(value, static_cast<int64_t>(1000 * subject + at));
    }
    EXPECT_EQ(Read(), -1);
  };
  EXPECT_EQ(Read(), 2000);
  read_all(2, 1);
  EXPECT_EQ(channel->Forget(1), 1u) << "what was read before";
  EXPECT_EQ(channel->Forget(2), 1 + sent / 2);
  client = std::move(pair->client);
  read_all(1, 2);
  EXPECT_EQ(other.Forget(1), (sent - 1) / 2);
}

TEST_F(Channel, TakeBack_ANumberThatIsUsedAgain_TheLatestRecordsAreItsOwn) {
  Send(1, 1001);
  (void)channel->Forget(1);
  Send(1, 1002);
  auto pair = MakeEventPair();
  EventChannel other(loop, backlog, std::move(pair->ours));
  channel->Hold();
  channel->TakeBack(session::EventChannel::ReadUnread(client.get()), SubjectOf);
  channel->MoveWaiting(other, 1, NoneOther);
  EXPECT_EQ(Read(), 1001) << "nobody's, and where it was";
  EXPECT_EQ(Read(), -1);
  client = std::move(pair->client);
  EXPECT_EQ(Read(), 1002);
  EXPECT_EQ(other.Forget(1), 1u);
}

TEST_F(Channel, ClientCookie_IsThatOfTheClientsEnd) {
  auto pair = MakeEventPair();
  const EventChannel other(loop, backlog, std::move(pair->ours), pair->client.get());
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  ASSERT_EQ(::getsockopt(pair->client.get(), SOL_SOCKET, SO_COOKIE, &cookie, &size), 0);
  EXPECT_EQ(other.client_cookie(), cookie);
  EXPECT_EQ(channel->client_cookie(), 0u) << "nobody said which it is";
}

TEST_F(Channel, MoveWaiting_BringsOthersAlong_InTheOrderOfAll) {
  while (channel->waiting() == 0) Send(1, 7);
  for (const uint32_t value : {2000, 3001, 2003, 4004, 3005, 2006, 3007}) Send(value / 1000, value);
  auto pair = MakeEventPair();
  EventChannel other(loop, backlog, std::move(pair->ours));
  // The record 2003 is about the subject 3.
  channel->MoveWaiting(other, 2, [](std::span<const uint8_t> record) {
    uint32_t value = 0;
    std::memcpy(&value, record.data(), sizeof value);
    return value == 2003 ? std::optional<EventChannel::Subject>(3) : std::nullopt;
  });
  EXPECT_EQ(channel->waiting(), 2u);
  client = std::move(pair->client);
  for (const int64_t value : {2000, 3001, 2003, 3005, 2006, 3007}) EXPECT_EQ(Read(), value);
  EXPECT_EQ(Read(), -1);
}

}  // namespace
}  // namespace rocegw::session
