// SPDX-License-Identifier: Apache-2.0
// From a post by the client library to a reader that works as a worker does.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <vector>

#include "gateway/shm/doorbell.h"
#include "tests/support/qp/send_queues.h"

namespace rocegw::testing {
namespace {

class PostAndTake : public ::testing::Test {
 protected:
  void Post(uint32_t queue) {
    ibv_sge sge{0x1000, 1 << 20, 1};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    ibv_send_wr* bad;
    ASSERT_EQ(client::PostSend(mapping_.ring(queue), &wr, &bad), 0);
  }
  SendQueues::Found Read() {
    taken_.clear();
    return queues_.Read(
        now_, [this](uint32_t queue, const SendQueues::Slot&) { taken_.push_back(queue); });
  }

  SendQueues queues_{70, 128};
  SendQueues::ClientMapping mapping_{queues_};
  TimePoint now_{1000000};
  std::vector<uint32_t> taken_;
};

TEST_F(PostAndTake, FirstRequest_IsTakenAtOnce) {
  EXPECT_FALSE(Read().busy);
  Post(69);
  EXPECT_TRUE(Read().busy);
  EXPECT_EQ(taken_, std::vector<uint32_t>{69});
}

TEST_F(PostAndTake, RequestsWithinThePause_GatherAndTheReaderStaysAwake) {
  Post(3);
  Read();
  now_ = now_ + Nanoseconds(999);
  for (const uint32_t queue : {3u, 3u, 64u}) Post(queue);
  EXPECT_TRUE(Read().busy);
  EXPECT_TRUE(taken_.empty());
  now_ = now_ + Nanoseconds(1);
  EXPECT_TRUE(Read().busy);
  EXPECT_EQ(taken_, (std::vector<uint32_t>{3, 3, 64}));
}

TEST_F(PostAndTake, NoRequestSinceThePause_ReaderMaySleep) {
  Post(3);
  Read();
  now_ = now_ + Microseconds(1);
  EXPECT_FALSE(Read().busy);
}

// The doorbell is taken when the first turn begins; the rest of the requests needs no second
// doorbell.
TEST_F(PostAndTake, MoreThanATurn_IsTakenInLaterIterationsWithoutABell) {
  for (int i = 0; i < 100; ++i) Post(5);
  size_t total = 0;
  for (int i = 0; i < 4; ++i) {
    Read();
    EXPECT_LE(taken_.size(), 32u);
    total += taken_.size();
  }
  EXPECT_EQ(total, 100u);
}

// A request posted while its bit is still set needs no doorbell of its own.
TEST_F(PostAndTake, BitStands_IndexIsReadWhenItIsTaken) {
  Post(7);
  Post(7);
  Read();
  EXPECT_EQ(taken_.size(), 2u);
  EXPECT_EQ(queues_.Waiting(7), 0u);
}

}  // namespace
}  // namespace rocegw::testing
