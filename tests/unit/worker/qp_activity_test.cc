// SPDX-License-Identifier: Apache-2.0
// Timers of queue pairs: a queue pair is asked for its deadline after its events, and not again by
// a timer whose deadline has moved.
#include "gateway/worker/objects/qp_activity.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace rocegw::testing::qp_activity {
namespace {

using namespace worker;  // NOLINT(google-build-using-namespace)

// Queue pair with nothing but a deadline.
class TimedQueuePair final : public transport::QueuePair {
 public:
  TimePoint deadline() const override {
    ++asked;
    return at;
  }

  TimePoint at = kNever;
  mutable int asked = 0;
  int due = 0;

 protected:
  bool DoReset() override { return true; }
  bool Drained() const override { return true; }
  void DoFlush(transport::Outbox&) override {}
  transport::PumpResult DoPump(transport::Outbox&, TimePoint, transport::PumpBudget&) override {
    return transport::PumpResult::kIdle;
  }
  metrics::DropReason DoPacket(transport::Outbox&, const wire::RxPacket&, TimePoint) override {
    return metrics::DropReason::kNone;
  }
  void DoMemoryDone(transport::Outbox&) override {}
  void DoMemoryFault(transport::Outbox&, const transport::AccessTag&) override {}
  void DoDeadline(transport::Outbox&, TimePoint) override { ++due; }
};

class NoOutbox final : public transport::Outbox {
 public:
  port::TxPacket* NewPacket(transport::QpContext&) override { return nullptr; }
  void Send(transport::QpContext&, port::TxPacket*) override {}
  void Access(transport::QpContext&, const memory::MemoryOp&, const transport::AccessTag&,
              port::TxPacket*) override {}
  void Event(transport::QpContext&, verbs::AsyncEvent) override {}
  void Fault(transport::QpContext&, const char*) override {}
  TimePoint now() const override { return {}; }
};

class QpActivityTest : public ::testing::Test {
 protected:
  QpActivityTest() : handle_(qps_.Add(Qpn{17})) {
    session_.account = scheduler_.Open(nullptr);
    auto qp = std::make_unique<TimedQueuePair>();
    qp_ = qp.get();
    Slot().qp = std::move(qp);
    Slot().session = &session_;
  }
  ~QpActivityTest() override { scheduler_.Close(session_.account); }

  QpSlot& Slot() { return qps_.slots()[handle_.index]; }
  static TimePoint At(int64_t microseconds) { return TimePoint{} + Microseconds(microseconds); }
  void SetDeadline(TimePoint at) {
    qp_->at = at;
    activity_.AfterEvent(Slot(), handle_);
  }
  // Handles the timers that are due. Returns how many there were.
  size_t Advance(TimePoint now) {
    std::vector<WorkerObject> due;
    wheel_.Advance(now, due);
    for (const WorkerObject owner : due) activity_.OnTimer(owner.slot(), outbox_, now);
    return due.size();
  }

  Scheduler scheduler_{nullptr, 0};
  TimerWheel wheel_{TimePoint{}, Microseconds(1)};
  QpTable qps_;
  QpActivity activity_{qps_, scheduler_, wheel_};
  WorkerSession session_;
  NoOutbox outbox_;
  SlotHandle handle_;
  TimedQueuePair* qp_ = nullptr;
};

TEST_F(QpActivityTest, DeadlinePassed_QueuePairHandlesIt) {
  SetDeadline(At(10));
  EXPECT_EQ(Advance(At(9)), 0u);
  EXPECT_EQ(Advance(At(10)), 1u);
  EXPECT_EQ(qp_->due, 1);
}

TEST_F(QpActivityTest, DeadlineMovedLater_TimerAsksNobodyAndComesAgain) {
  SetDeadline(At(10));
  SetDeadline(At(50));
  const int asked = qp_->asked;
  EXPECT_EQ(Advance(At(10)), 1u);
  EXPECT_EQ(qp_->asked, asked);
  EXPECT_EQ(qp_->due, 0);
  EXPECT_EQ(Advance(At(50)), 1u);
  EXPECT_EQ(qp_->due, 1);
}

TEST_F(QpActivityTest, NoDeadlineAnyMore_TimerIsTheLast) {
  SetDeadline(At(10));
  SetDeadline(kNever);
  const int asked = qp_->asked;
  EXPECT_EQ(Advance(At(10)), 1u);
  EXPECT_EQ(qp_->asked, asked);
  EXPECT_EQ(wheel_.NextDeadline(), kNever);
}

// A change without an event of the queue pair, as by SwitchCc, is found when the old deadline
// passes.
TEST_F(QpActivityTest, DeadlineMovedLaterWithoutEvent_NotHandledEarly) {
  SetDeadline(At(10));
  qp_->at = At(50);
  EXPECT_EQ(Advance(At(10)), 1u);
  EXPECT_EQ(qp_->due, 0);
  EXPECT_EQ(Advance(At(50)), 1u);
  EXPECT_EQ(qp_->due, 1);
}

TEST_F(QpActivityTest, DeadlineMovedEarlier_HandledInTime) {
  SetDeadline(At(50));
  SetDeadline(At(10));
  EXPECT_EQ(Advance(At(10)), 1u);
  EXPECT_EQ(qp_->due, 1);
}

}  // namespace
}  // namespace rocegw::testing::qp_activity
