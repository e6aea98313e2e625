// SPDX-License-Identifier: Apache-2.0
// Completion queues and channels through the attach protocol.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>

#include "gateway/verbs/types.h"
#include "tests/unit/session/objects/objects_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(Objects, CreateCq_RingsPerWorkerInReadOnlyMemory) {
  const auto cq = client.CreateCq(context, 100);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(cq.entries, 128u);
  EXPECT_EQ(cq.worker_count, 2u);
  EXPECT_TRUE(client.chunks[cq.rings.chunk].read_only);
  EXPECT_FALSE(client.chunks[cq.control.chunk].read_only);
  auto* const rings = reinterpret_cast<rocegw_cqe*>(client.At(cq.rings));
  auto* const control = reinterpret_cast<rocegw_cq_control*>(client.At(cq.control));
  ASSERT_NE(rings, nullptr);
  ASSERT_NE(control, nullptr);
  for (uint32_t w = 0; w < 2; ++w) {
    const verbs::CqConfig& config = On(w).cqs[cq.handle];
    EXPECT_EQ(config.entries, 128u);
    EXPECT_EQ(config.cookie, 0xC0u);
    EXPECT_EQ(config.event_fd, -1);
    config.ring[127].wr_id = 1000 + w;
    EXPECT_EQ(rings[w * 128 + 127].wr_id, 1000 + w);
    control->worker[w].consumer = 50 + w;
    EXPECT_EQ(config.control->worker[config.worker_slot].consumer, 50 + w);
  }
  client.Object(ROCEGW_MSG_DESTROY_CQ, cq.handle);
  EXPECT_EQ(client.error(), 0);
  EXPECT_TRUE(On(0).cqs.empty());
}

TEST_F(Objects, ResizeCq_NewRingsOnEveryWorker_OrTheOldOnes) {
  const auto cq = client.CreateCq(context, 100);
  auto request = TestClient::Request<rocegw_resize_cq>(ROCEGW_MSG_RESIZE_CQ);
  request.cq = cq.handle;
  request.entries = 1000;
  const auto larger = client.Call<rocegw_cq_reply>(request);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(larger.handle, cq.handle);
  EXPECT_EQ(larger.entries, 1024u);
  EXPECT_EQ(larger.worker_count, cq.worker_count);
  EXPECT_EQ(larger.control.offset, cq.control.offset);
  EXPECT_TRUE(client.chunks[larger.rings.chunk].read_only);
  for (size_t w = 0; w < host.workers.size(); ++w) {
    const verbs::CqConfig& config = On(w).cqs[cq.handle];
    EXPECT_EQ(config.entries, 1024u);
    config.ring->wr_id = 40 + w;
    const uint8_t* const theirs = client.At(larger.rings) + w * 1024 * sizeof(rocegw_cqe);
    EXPECT_EQ(reinterpret_cast<const rocegw_cqe*>(theirs)->wr_id, 40 + w);
  }
  rocegw_cqe* const old = On(0).cqs[cq.handle].ring;
  host.workers[1]->fail_next = ENOSPC;
  request.entries = 600;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL) << "more waits than that, although it would fit";
  request.entries = 600;
  EXPECT_EQ(client.Call<rocegw_cq_reply>(request).entries, 1024u) << "the rings it has";
  EXPECT_EQ(client.error(), 0);
  host.workers[1]->fail_next = ENOSPC;
  request.entries = 16;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL) << "more waits than that";
  EXPECT_EQ(On(0).cqs[cq.handle].ring, old);
  host.workers[1]->fail_next = ENOSPC;
  host.workers[1]->fail_after = 1;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL) << "more came meanwhile";
  EXPECT_EQ(On(0).cqs[cq.handle].ring, old);
  EXPECT_EQ(On(0).cqs[cq.handle].entries, 1024u);
  request.entries = 0;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL);
  request.entries = (1u << 20) + 1;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL);
  request.cq = 99;
  client.Call<rocegw_cq_reply>(request);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Objects, ModerateCq_IsToldToEveryWorker_WithOneCount) {
  const uint32_t cq = Cq();
  auto request = TestClient::Request<rocegw_moderate_cq>(ROCEGW_MSG_MODERATE_CQ);
  request.cq = cq;
  request.count = 7;
  request.period = 50;
  client.Call<rocegw_object_reply>(request);
  ASSERT_EQ(client.error(), 0);
  const worker::ModerateCq& first = On(0).moderated[cq];
  const worker::ModerateCq& second = On(1).moderated[cq];
  EXPECT_EQ(first.count, 7u);
  EXPECT_EQ(first.period, Microseconds(50));
  EXPECT_EQ(first.moderation, second.moderation);
  request.cq = 99;
  client.Call<rocegw_object_reply>(request);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Objects, CreateCq_RefusesBadSizesAndChannels) {
  client.CreateCq(context, 0);
  EXPECT_EQ(client.error(), EINVAL);
  client.CreateCq(context, (1u << 20) + 1);
  EXPECT_EQ(client.error(), EINVAL);
  client.CreateCq(context, 16, 77);
  EXPECT_EQ(client.error(), EINVAL);
  client.CreateCq(context + 9, 16);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Objects, CompletionChannel_WorkersWriteClientReads) {
  const uint32_t channel = client.CreateChannel(context);
  ASSERT_NE(channel, 0u);
  const UniqueFd events = std::move(client.received_fd);
  const auto cq = client.CreateCq(context, 16, channel);
  ASSERT_EQ(client.error(), 0);
  const rocegw_completion_event event{0xC0, cq.handle, 0};
  ASSERT_EQ(::send(On(1).cqs[cq.handle].event_fd, &event, sizeof event, MSG_DONTWAIT), 16);
  rocegw_completion_event got{};
  EXPECT_EQ(::recv(events.get(), &got, sizeof got, MSG_DONTWAIT), 16);
  EXPECT_EQ(got.cookie, 0xC0u);
  // The client's end blocks unless the program changes it, and refuses writes.
  EXPECT_EQ(::fcntl(events.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(::send(events.get(), &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL), -1);

  client.Object(ROCEGW_MSG_DESTROY_CHANNEL, channel);
  EXPECT_EQ(client.error(), EBUSY);
  host.workers[0]->cq_events[cq.handle] = 3;
  host.workers[1]->cq_events[cq.handle] = 4;
  EXPECT_EQ(client.Object(ROCEGW_MSG_DESTROY_CQ, cq.handle).events_reported, 7u);
  client.Object(ROCEGW_MSG_DESTROY_CHANNEL, channel);
  EXPECT_EQ(client.error(), 0);
}

}  // namespace
}  // namespace rocegw::testing
