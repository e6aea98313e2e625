// SPDX-License-Identifier: Apache-2.0
// Event channels outlive their gateway: each id gets one device removal event, then the channel is
// silent, and it serves new ids as soon as a gateway exists again.
#include <fcntl.h>
#include <poll.h>

#include "tests/unit/client/cm/cm_fixture.h"

namespace rocegw::testing {
namespace {

class GatewayRestart : public CmTest {
 protected:
  static bool IsReadable(const rdma_event_channel* channel) {
    pollfd look = {channel->fd, POLLIN, 0};
    return poll(&look, 1, 0) == 1;
  }
  // Returns the next event of a channel that has one.
  static rdma_cm_event_type Next(rdma_event_channel* channel, rdma_cm_id** id) {
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(0, rdma_get_cm_event(channel, &event));
    if (event == nullptr) return RDMA_CM_EVENT_TIMEWAIT_EXIT;
    const rdma_cm_event_type type = event->event;
    *id = event->id;
    EXPECT_EQ(0, rdma_ack_cm_event(event));
    return type;
  }
  static void ExpectQuiet(rdma_event_channel* channel) {
    rdma_cm_event* event = nullptr;
    ASSERT_EQ(0, fcntl(channel->fd, F_SETFL, O_NONBLOCK));
    EXPECT_EQ(-1, rdma_get_cm_event(channel, &event));
    EXPECT_EQ(EAGAIN, errno);
    ASSERT_EQ(0, fcntl(channel->fd, F_SETFL, 0));
    EXPECT_FALSE(IsReadable(channel));
  }
  void Restart() {
    options_.socket_path = daemon_->socket_path();
    daemon_->Die();
    gone_.push_back(std::move(daemon_));  // its destructor removes the socket's directory
    SetUp();
  }
  rdma_cm_id* Listening(rdma_event_channel* channel, const char* where) {
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
    sockaddr_in address = Address(where, 7471);
    EXPECT_EQ(0, rdma_bind_addr(id, Generic(address)));
    EXPECT_EQ(0, rdma_listen(id, 4));
    return id;
  }

  std::vector<std::unique_ptr<FakeDaemon>> gone_;
};

TEST_F(GatewayRestart, EachIdIsToldOnce_ThenTheChannelIsQuiet) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* ids[] = {Resolved(channel), Listening(channel, "0.0.0.0"),
                       Listening(channel, "10.0.0.1")};
  daemon_->Die();
  std::vector<rdma_cm_id*> told;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(IsReadable(channel));
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(RDMA_CM_EVENT_DEVICE_REMOVAL, Next(channel, &id));
    told.push_back(id);
  }
  for (rdma_cm_id* id : ids) EXPECT_EQ(1, std::count(told.begin(), told.end(), id));
  ExpectQuiet(channel);
  rdma_cm_id* refused = nullptr;
  EXPECT_EQ(-1, rdma_create_id(channel, &refused, nullptr, RDMA_PS_TCP));
  EXPECT_EQ(ENODEV, errno) << "there is no gateway";
  End(channel, {ids[0], ids[1], ids[2]});
}

TEST_F(GatewayRestart, ChannelServesTheNextGateway) {
  rdma_event_channel* channel = rdma_create_event_channel();
  for (int round = 0; round < 3; ++round) {
    rdma_cm_id* old = Resolved(channel);
    Restart();
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(RDMA_CM_EVENT_DEVICE_REMOVAL, Next(channel, &id));
    EXPECT_EQ(old, id);
    ExpectQuiet(channel);
    EXPECT_EQ(0, rdma_destroy_id(old));
  }
  End(channel, {Resolved(channel)});
}

TEST_F(GatewayRestart, NewIdBeforeTheOldOnesWereTold_BothGetTheirs) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* old = Resolved(channel);
  Restart();
  rdma_cm_id* fresh = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &fresh, nullptr, RDMA_PS_TCP));
  sockaddr_in to = Address("10.0.0.2", 7174);
  ASSERT_EQ(0, rdma_resolve_addr(fresh, nullptr, Generic(to), 2000));
  bool removed = false;
  bool resolved = false;
  for (int i = 0; i < 2; ++i) {
    rdma_cm_id* id = nullptr;
    const rdma_cm_event_type type = Next(channel, &id);
    removed |= type == RDMA_CM_EVENT_DEVICE_REMOVAL && id == old;
    resolved |= type == RDMA_CM_EVENT_ADDR_RESOLVED && id == fresh;
  }
  EXPECT_TRUE(removed);
  EXPECT_TRUE(resolved);
  ExpectQuiet(channel);
  End(channel, {old, fresh});
}

TEST_F(GatewayRestart, ChannelWithoutIds_IsQuietAndServesTheNextGateway) {
  rdma_event_channel* channel = rdma_create_event_channel();
  Restart();
  ExpectQuiet(channel);
  End(channel, {Resolved(channel)});
}

}  // namespace
}  // namespace rocegw::testing
