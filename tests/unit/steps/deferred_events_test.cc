// SPDX-License-Identifier: Apache-2.0
// Steps of a worker's iteration with deferred events.
#include "gateway/worker/objects/deferred_events.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/support/qp/ring_end.h"
#include "tests/support/steps.h"

namespace rocegw::testing::deferred_events_steps {
namespace {

// Returns the steps of 100 iterations of a worker with so many deferred events.
uint64_t StepsOfIterations(size_t queues) {
  RingEnd end{RingOptions{}};
  std::deque<verbs::CompletionQueue> all;
  worker::DeferredEvents deferred;
  for (size_t i = 0; i < queues; ++i) {
    verbs::CompletionQueue& cq = all.emplace_back(end.Cq());
    cq.due = TimePoint{1000000 + static_cast<int64_t>(i)};
    deferred.Add(cq);
  }
  bool nothing_due = true;
  const uint64_t steps = StepsOf([&] {
    for (int64_t i = 0; i < 100; ++i) {
      nothing_due &= deferred.TakeDue(TimePoint{i}) == nullptr;
      nothing_due &= deferred.next() == TimePoint{1000000};
    }
  });
  EXPECT_TRUE(nothing_due);
  return steps;
}

TEST(DeferredEventsSteps, ManyQueues_CostAnIterationNothing) {
  const uint64_t few = StepsOfIterations(10);
  EXPECT_GE(few, 200u) << "the code is not counted";
  EXPECT_EQ(StepsOfIterations(20000), few);
}

}  // namespace
}  // namespace rocegw::testing::deferred_events_steps
