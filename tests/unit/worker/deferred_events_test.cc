// SPDX-License-Identifier: Apache-2.0
// Completion queues whose event is deferred: each is due at its time, and costs nothing before.
#include "gateway/worker/objects/deferred_events.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/support/qp/ring_end.h"
#include "tests/support/random.h"

namespace rocegw::testing::deferred_events {
namespace {

using worker::DeferredEvents;

class DeferredEventsTest : public ::testing::Test {
 protected:
  verbs::CompletionQueue& Queue(TimePoint due) {
    verbs::CompletionQueue& cq = queues_.emplace_back(end_.Cq());
    cq.due = due;
    deferred_.Add(cq);
    return cq;
  }

  RingEnd end_{RingOptions{}};
  std::deque<verbs::CompletionQueue> queues_;
  DeferredEvents deferred_;
};

TEST_F(DeferredEventsTest, Due_InTheirOrder_AndNotBefore) {
  verbs::CompletionQueue& late = Queue(TimePoint{300});
  verbs::CompletionQueue& early = Queue(TimePoint{100});
  EXPECT_EQ(deferred_.next(), TimePoint{100});
  EXPECT_EQ(deferred_.TakeDue(TimePoint{99}), nullptr);
  EXPECT_EQ(deferred_.TakeDue(TimePoint{300}), &early);
  EXPECT_EQ(deferred_.TakeDue(TimePoint{300}), &late);
  EXPECT_EQ(deferred_.TakeDue(TimePoint{300}), nullptr);
  EXPECT_EQ(deferred_.next(), kNever);
}

TEST_F(DeferredEventsTest, TimeChanges_TheNewOneHolds) {
  verbs::CompletionQueue& sooner = Queue(TimePoint{300});
  verbs::CompletionQueue& later = Queue(TimePoint{400});
  verbs::CompletionQueue& sent = Queue(TimePoint{500});
  sooner.due = TimePoint{200};
  deferred_.Add(sooner);
  later.due = TimePoint{700};
  deferred_.Add(later);
  sent.due = kNever;
  EXPECT_EQ(deferred_.TakeDue(TimePoint{200}), &sooner);
  EXPECT_EQ(deferred_.TakeDue(TimePoint{300}), nullptr);
  EXPECT_EQ(deferred_.next(), TimePoint{700});
  EXPECT_EQ(deferred_.TakeDue(TimePoint{700}), &later);
  EXPECT_EQ(deferred_.TakeDue(TimePoint{1000}), nullptr);
  EXPECT_EQ(deferred_.size(), 0u);
}

TEST_F(DeferredEventsTest, RemovedQueue_IsNotTouchedAgain) {
  const verbs::CompletionQueue& gone = Queue(TimePoint{100});
  verbs::CompletionQueue& other = Queue(TimePoint{200});
  deferred_.Remove(gone);
  EXPECT_EQ(deferred_.next(), TimePoint{200});
  EXPECT_EQ(deferred_.TakeDue(TimePoint{200}), &other);
}

TEST_F(DeferredEventsTest, RandomTimes_AgreeWithAModel) {
  Random random(5);
  for (int i = 0; i < 100; ++i) Queue(kNever);
  for (int64_t now = 1; now < 20000; ++now) {
    verbs::CompletionQueue& cq = queues_[random.Below(queues_.size())];
    cq.due = random.Below(4) == 0 ? kNever : TimePoint{now + 1 + int64_t(random.Below(500))};
    deferred_.Add(cq);
    while (verbs::CompletionQueue* const due = deferred_.TakeDue(TimePoint{now})) {
      ASSERT_LE(due->due, TimePoint{now});
      due->due = kNever;
    }
    TimePoint next = kNever;
    for (const verbs::CompletionQueue& one : queues_) next = Earlier(next, one.due);
    ASSERT_EQ(deferred_.next(), next);
    ASSERT_GT(next, TimePoint{now}) << "nothing is late";
  }
}

}  // namespace
}  // namespace rocegw::testing::deferred_events
