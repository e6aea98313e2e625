// SPDX-License-Identifier: Apache-2.0
// rdma_migrate_id while threads take events, against a real session server: every event arrives
// once, in order, and not on the old channel after the call has returned.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/session/running_session.h"

namespace rocegw::testing {
namespace {

constexpr uint32_t kOwn = 0xC0000201;

session::Device DeviceWithOneAddress() {
  session::Device device = SessionHost::MakeDevice();
  device.gids = {wire::Gid::FromV4(kOwn)};
  return device;
}

sockaddr_in Address(uint32_t v4, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(v4);
  return address;
}
sockaddr* Generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

class Migrate : public ::testing::Test {
 protected:
  void SetUp() override { setenv("ROCEGW_SOCKET", running_.path().c_str(), 1); }
  void TearDown() override { unsetenv("ROCEGW_SOCKET"); }
  // Creates an id with an event for each of its joins, which carries the join's context.
  static rdma_cm_id* MakeId(rdma_event_channel* channel) {
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_UDP));
    sockaddr_in own = Address(kOwn, 0);
    EXPECT_EQ(0, rdma_bind_addr(id, Generic(own)));
    return id;
  }
  static void Join(rdma_cm_id* id, uintptr_t number) {
    sockaddr_in group = Address(0xEF010203, 0);
    ASSERT_EQ(0, rdma_join_multicast(id, Generic(group), reinterpret_cast<void*>(number)));
  }
  // Returns the context of the next event; 0: none.
  static uintptr_t Next(rdma_event_channel* channel, rdma_cm_id* id) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel, &event) != 0) {
      EXPECT_EQ(EAGAIN, errno);
      return 0;
    }
    EXPECT_EQ(id, event->id);
    EXPECT_EQ(RDMA_CM_EVENT_MULTICAST_JOIN, event->event);
    const auto number = reinterpret_cast<uintptr_t>(event->param.ud.private_data);
    EXPECT_EQ(0, rdma_ack_cm_event(event));
    return number;
  }
  static rdma_event_channel* NonBlockingChannel() {
    rdma_event_channel* channel = rdma_create_event_channel();
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    return channel;
  }

  SessionHost host_{
      2, {}, 4096, {DeviceWithOneAddress()}, [](const wire::Gid&, uint32_t) -> StatusOr<wire::Gid> {
        return wire::Gid::FromV4(kOwn);
      }};
  RunningSession running_{host_};
};

TEST_F(Migrate, UnreadEvents_AreOnTheNewChannelInOrder_OthersWhereTheyWere) {
  rdma_event_channel* first = NonBlockingChannel();
  rdma_event_channel* second = NonBlockingChannel();
  rdma_cm_id* moves = MakeId(first);
  rdma_cm_id* stays = MakeId(first);
  // More than a socket holds.
  constexpr uintptr_t kEvents = 400;
  for (uintptr_t i = 1; i <= kEvents; ++i) {
    Join(moves, i);
    Join(stays, i);
  }
  ASSERT_EQ(0, rdma_migrate_id(moves, second));
  EXPECT_EQ(second, moves->channel);
  for (uintptr_t i = 1; i <= kEvents; ++i) {
    for (rdma_cm_id* id : {moves, stays}) {
      pollfd ready{id->channel->fd, POLLIN, 0};
      ASSERT_EQ(1, poll(&ready, 1, 10000));
      ASSERT_EQ(i, Next(id->channel, id));
    }
  }
  EXPECT_EQ(0u, Next(first, stays));
  EXPECT_EQ(0u, Next(second, moves));
  for (rdma_cm_id* id : {moves, stays}) EXPECT_EQ(0, rdma_destroy_id(id));
  for (rdma_event_channel* channel : {first, second}) rdma_destroy_event_channel(channel);
}

TEST_F(Migrate, ToAChannelOfItsOwn_AndBack) {
  rdma_event_channel* channel = NonBlockingChannel();
  rdma_cm_id* id = MakeId(channel);
  Join(id, 1);
  ASSERT_EQ(0, rdma_migrate_id(id, nullptr));
  EXPECT_NE(channel, id->channel);
  EXPECT_EQ(0u, Next(channel, id));
  // A waiting call takes the first event.
  Join(id, 2);
  ASSERT_NE(nullptr, id->event);
  EXPECT_EQ(1u, reinterpret_cast<uintptr_t>(id->event->param.ud.private_data));
  ASSERT_EQ(0, rdma_migrate_id(id, channel));
  EXPECT_EQ(channel, id->channel);
  EXPECT_EQ(nullptr, id->event);
  EXPECT_EQ(2u, Next(channel, id));
  EXPECT_EQ(0u, Next(channel, id));
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(Migrate, WaitsForThoseThatWereReadBefore_AndForNoOthers) {
  rdma_event_channel* first = rdma_create_event_channel();
  rdma_event_channel* second = rdma_create_event_channel();
  rdma_cm_id* id = MakeId(first);
  Join(id, 1);
  Join(id, 2);
  rdma_cm_event* old = nullptr;
  ASSERT_EQ(0, rdma_get_cm_event(first, &old));
  std::atomic<bool> moved = false;
  std::thread mover([&] {
    EXPECT_EQ(0, rdma_migrate_id(id, second));
    moved = true;
  });
  // An event of the new channel is not acknowledged before the call has returned.
  rdma_cm_event* later = nullptr;
  ASSERT_EQ(0, rdma_get_cm_event(second, &later));
  EXPECT_FALSE(moved);
  EXPECT_EQ(0, rdma_ack_cm_event(old));
  mover.join();
  EXPECT_EQ(0, rdma_ack_cm_event(later));
  EXPECT_EQ(0, rdma_destroy_id(id));
  for (rdma_event_channel* channel : {first, second}) rdma_destroy_event_channel(channel);
}

TEST_F(Migrate, BackAndForthUnderReaders_NothingIsLostDoubledOrOvertaken) {
  constexpr uintptr_t kEvents = 3000;
  constexpr int kIds = 2;
  rdma_event_channel* channels[] = {rdma_create_event_channel(), rdma_create_event_channel()};
  rdma_cm_id* ids[kIds];
  std::atomic<int> moves = 0;
  for (int i = 0; i < kIds; ++i) ids[i] = MakeId(channels[i]);
  std::atomic<bool> closing = false;
  std::atomic<uintptr_t> taken = 0;
  std::vector<uintptr_t> read[2][kIds];  // by channel and id
  std::vector<std::thread> threads;
  threads.reserve(2 + 2 * kIds);
  for (int c = 0; c < 2; ++c) {
    threads.emplace_back([&, c] {
      while (!closing) {
        rdma_cm_event* event = nullptr;
        ASSERT_EQ(0, rdma_get_cm_event(channels[c], &event));
        const auto number = reinterpret_cast<uintptr_t>(event->param.ud.private_data);
        if (number != 0) {
          read[c][event->id == ids[0] ? 0 : 1].push_back(number);
          ++taken;
        }
        EXPECT_EQ(0, rdma_ack_cm_event(event));
      }
    });
  }
  for (int i = 0; i < kIds; ++i) {
    threads.emplace_back([&, i] {
      for (uintptr_t number = 1; number <= kEvents; ++number) Join(ids[i], number);
    });
    threads.emplace_back([&, i] {
      for (int at = i; taken != kIds * kEvents; at = 1 - at) {
        ASSERT_EQ(0, rdma_migrate_id(ids[i], channels[1 - at]));
        ++moves;
      }
    });
  }
  for (size_t t = 2; t < threads.size(); ++t) threads[t].join();
  EXPECT_GT(moves, 2 * kIds);
  // An event each ends the readers.
  closing = true;
  for (int c = 0; c < 2; ++c) {
    EXPECT_EQ(0, rdma_migrate_id(ids[c], channels[c]));
    Join(ids[c], 0);
  }
  for (size_t t = 0; t < 2; ++t) threads[t].join();
  for (int i = 0; i < kIds; ++i) {
    std::vector<uintptr_t> all;
    for (const auto& of_channel : read) {
      EXPECT_TRUE(std::ranges::is_sorted(of_channel[i]));
      all.insert(all.end(), of_channel[i].begin(), of_channel[i].end());
    }
    std::ranges::sort(all);
    std::vector<uintptr_t> each_once(kEvents);
    std::iota(each_once.begin(), each_once.end(), 1);
    EXPECT_EQ(each_once, all);
    EXPECT_EQ(0, rdma_destroy_id(ids[i]));
  }
  for (rdma_event_channel* channel : channels) rdma_destroy_event_channel(channel);
}

}  // namespace
}  // namespace rocegw::testing
