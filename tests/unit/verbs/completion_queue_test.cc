// SPDX-License-Identifier: Apache-2.0
// Completions, and when an event is due for them.
#include "gateway/verbs/completion_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocegw::verbs::completion_queue {
namespace {

constexpr uint32_t kEntries = 16;
constexpr TimePoint kNow{1000};

class CompletionQueueTest : public ::testing::Test {
 protected:
  explicit CompletionQueueTest(int event_fd = 0)
      : ring(kEntries), control_memory(3 * 8), queue(Config(event_fd)) {
    queue.fresh_list = &fresh;
  }
  CqConfig Config(int event_fd) {
    CqConfig config;
    config.cq_handle = 1;
    config.entries = kEntries;
    config.worker_slot = 1;
    config.ring = ring.data();
    config.control = control();
    config.event_fd = event_fd;  // its presence is checked; it is never used
    return config;
  }
  rocegw_cq_control* control() {
    return reinterpret_cast<rocegw_cq_control*>(control_memory.data());
  }
  bool Push(uint16_t flags = 0, uint8_t status = 0) {
    rocegw_cqe cqe{};
    cqe.flags = flags;
    cqe.status = status;
    return queue.Push(cqe);
  }

  std::vector<rocegw_cqe> ring;
  std::vector<uint64_t> control_memory;
  CompletionQueue queue;
  std::vector<CompletionQueue*> fresh;
};

class WithoutChannel : public CompletionQueueTest {
 protected:
  WithoutChannel() : CompletionQueueTest(-1) {}
};

TEST_F(CompletionQueueTest, Pushed_ListedOnceUntilTaken) {
  EXPECT_TRUE(Push());
  EXPECT_TRUE(Push());
  EXPECT_EQ(fresh.size(), 1u);
  EXPECT_TRUE(queue.listed);
}

TEST_F(CompletionQueueTest, Room_IsThatOfItsOwnWorker) {
  for (uint32_t i = 0; i < kEntries; ++i) ASSERT_TRUE(Push());
  control()->worker[0].consumer = 2;
  EXPECT_FALSE(Push()) << "another worker's ring";
}

TEST_F(CompletionQueueTest, Overrun_StaysBroken) {
  for (uint32_t i = 0; i < kEntries; ++i) ASSERT_TRUE(Push());
  EXPECT_FALSE(queue.overrun());
  EXPECT_FALSE(queue.TakeOverrun());
  EXPECT_FALSE(Push());
  EXPECT_TRUE(queue.overrun());
  EXPECT_TRUE(queue.TakeOverrun());
  EXPECT_FALSE(queue.TakeOverrun()) << "its program was told";
  control()->worker[1].consumer = kEntries;
  EXPECT_FALSE(Push());
}

TEST_F(CompletionQueueTest, Unarmed_NoEvent) {
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
}

TEST_F(CompletionQueueTest, ArmedForAny_OneEvent) {
  control()->arm = ROCEGW_CQ_ARM_ANY;
  Push();
  EXPECT_TRUE(queue.TakeEvent(kNow));
  EXPECT_EQ(control()->arm, uint32_t{ROCEGW_CQ_UNARMED});
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
}

TEST_F(CompletionQueueTest, ArmedForSolicited_OnlySolicitedOrFailed) {
  control()->arm = ROCEGW_CQ_ARM_SOLICITED;
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
  EXPECT_EQ(control()->arm, uint32_t{ROCEGW_CQ_ARM_SOLICITED}) << "still armed";
  Push(ROCEGW_CQE_SOLICITED);
  Push();
  EXPECT_TRUE(queue.TakeEvent(kNow)) << "one of the burst is enough";
  control()->arm = ROCEGW_CQ_ARM_SOLICITED;
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow)) << "the burst before does not count";
  control()->worker[1].consumer = 4;
  Push(0, 5);
  EXPECT_TRUE(queue.TakeEvent(kNow)) << "a failure is always told";
}

TEST_F(CompletionQueueTest, ArmWordOfNonsense_CountsAsAny) {
  control()->arm = 0xDEADBEEF;
  Push();
  EXPECT_TRUE(queue.TakeEvent(kNow));
  EXPECT_EQ(control()->arm, uint32_t{ROCEGW_CQ_UNARMED});
}

TEST_F(CompletionQueueTest, SleepersOfWhateverNumber_AskedOnce) {
  for (const uint32_t word : {0U, 1U, 0xDEADBEEFU}) {
    control()->sleeping = word;
    Push();
    EXPECT_EQ(queue.WakePollers(VisibleCompletions()), 0u) << "nobody slept";
    EXPECT_EQ(control()->sleeping, 0u);
  }
}

TEST_F(WithoutChannel, Armed_NoEventAndStillArmed) {
  control()->arm = ROCEGW_CQ_ARM_ANY;
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
  EXPECT_EQ(control()->arm, uint32_t{ROCEGW_CQ_ARM_ANY});
}

// Rings of one queue on two workers.
class ModeratedQueue : public CompletionQueueTest {
 protected:
  ModeratedQueue() : queue2(Config(0)) {}
  void Moderate(uint32_t count, Duration period) {
    queue.Moderate(all, count, period);
    queue2.Moderate(all, count, period);
  }
  CqModeration all;
  CompletionQueue queue2;
};

TEST_F(ModeratedQueue, Count_IsOfAllWorkersTogether) {
  Moderate(3, {});
  control()->arm = ROCEGW_CQ_ARM_ANY;
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
  EXPECT_EQ(queue.due, kNever);
  ASSERT_TRUE(queue2.Push({}));
  ASSERT_TRUE(queue2.Push({}));
  EXPECT_TRUE(queue2.TakeEvent(kNow));
  control()->arm = ROCEGW_CQ_ARM_ANY;
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow)) << "counted from the event on";
}

TEST_F(ModeratedQueue, BeforeItIsArmed_NothingCounts) {
  Moderate(2, Microseconds(10));
  Push();
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
  control()->arm = ROCEGW_CQ_ARM_ANY;
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
  Push();
  EXPECT_TRUE(queue.TakeEvent(kNow));
}

TEST_F(ModeratedQueue, Period_RunsFromTheFirst) {
  Moderate(5, Microseconds(10));
  control()->arm = ROCEGW_CQ_ARM_ANY;
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
  EXPECT_EQ(queue.due, kNow + Microseconds(10));
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow + Microseconds(5)));
  EXPECT_EQ(queue.due, kNow + Microseconds(10));
  EXPECT_TRUE(queue.TakeEvent(kNow + Microseconds(10)));
  EXPECT_EQ(queue.due, kNever);
}

TEST_F(ModeratedQueue, AnotherWorkerHasTold_NothingIsDueAnyMore) {
  Moderate(2, Microseconds(10));
  control()->arm = ROCEGW_CQ_ARM_ANY;
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
  ASSERT_TRUE(queue2.Push({}));
  EXPECT_TRUE(queue2.TakeEvent(kNow));
  control()->arm = ROCEGW_CQ_ARM_ANY;
  EXPECT_FALSE(queue.TakeEvent(kNow + Microseconds(10)));
  EXPECT_EQ(queue.due, kNever);
}

TEST_F(ModeratedQueue, SolicitedOnOneWorker_CountReachedOnAnother) {
  Moderate(2, {});
  control()->arm = ROCEGW_CQ_ARM_SOLICITED;
  ASSERT_TRUE(queue2.Push({}));
  ASSERT_TRUE(queue2.Push({}));
  EXPECT_FALSE(queue2.TakeEvent(kNow)) << "none is solicited";
  Push(ROCEGW_CQE_SOLICITED);
  EXPECT_TRUE(queue.TakeEvent(kNow));
}

TEST_F(ModeratedQueue, LiftedWhileOneWaits_TheEventComes) {
  Moderate(9, {});
  control()->arm = ROCEGW_CQ_ARM_ANY;
  Push();
  EXPECT_FALSE(queue.TakeEvent(kNow));
  Moderate(0, {});
  EXPECT_TRUE(queue.TakeEvent(kNow));
  control()->arm = ROCEGW_CQ_ARM_ANY;
  EXPECT_FALSE(queue.TakeEvent(kNow)) << "for nothing new, none";
}

}  // namespace
}  // namespace rocegw::verbs::completion_queue
