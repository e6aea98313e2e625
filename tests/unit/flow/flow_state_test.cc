// SPDX-License-Identifier: Apache-2.0
// Flows that are written and read: the copy answers every question as the original does.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "gateway/flow/flow.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::flow {
namespace {

constexpr TimePoint kStart{1'000'000'000};

std::vector<uint8_t> Written(Flow& flow, TimePoint now) {
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  hand_over::StateStream out(bytes, now, versions);
  flow.HandOver(out, CcProfile::Preset());
  EXPECT_TRUE(out.ok()) << out.failure();
  return bytes;
}

std::string Read(const std::vector<uint8_t>& bytes, TimePoint now, Flow& flow) {
  hand_over::StateStream in(bytes, now);
  flow.HandOver(in, CcProfile::Preset());
  if (!in.ok()) return in.failure();
  return in.at_end() ? "" : "not at the end";
}

// Drives a flow by random events.
class FlowState : public ::testing::TestWithParam<int> {
 protected:
  FlowState() {
    flow.Start({.cc = {.kind = static_cast<CcKind>(GetParam()), .window_bytes = 100'000},
                .timeout = Milliseconds(5)},
               Psn(kPsnMask - 20), now);
  }
  void Step() {
    now = now + Nanoseconds(static_cast<int64_t>(random() % 20'000));
    const auto in_flight = static_cast<uint32_t>(PsnDistance(flow.next(), flow.una()));
    switch (random() % 8) {
      case 0:
        flow.OnCnp(now);
        break;
      case 1:
        if (flow.deadline() <= now) flow.OnDeadline(now);
        break;
      case 2:
        if (random() % 8 == 0) flow.OnLoss(now);
        break;
      case 3:
        if (flow.MayAnswer(1000, now)) flow.OnAnswered(1000, now);
        break;
      case 4:
        if (in_flight != 0) flow.OnAcked(flow.una() + (1 + random() % in_flight), 1000, now);
        break;
      default:
        if (flow.MaySend(3000, now)) flow.OnSent(3, 3000, now);
    }
  }

  std::mt19937 random{17};
  Flow flow;
  TimePoint now = kStart;
};

TEST_P(FlowState, ReadAtAnyMoment_GoesOnAsTheOriginal) {
  for (int i = 0; i < 2000; ++i) {
    Step();
    Flow copy;
    ASSERT_EQ(Read(Written(flow, now), now, copy), "");
    EXPECT_EQ(copy.una(), flow.una());
    EXPECT_EQ(copy.next(), flow.next());
    EXPECT_EQ(copy.max(), flow.max());
    EXPECT_EQ(copy.in_flight(), flow.in_flight());
    EXPECT_EQ(copy.deadline(), flow.deadline());
    EXPECT_EQ(copy.earliest(), flow.earliest());
    EXPECT_EQ(copy.cc_window(), flow.cc_window());
    EXPECT_EQ(copy.NextAnswer(now), flow.NextAnswer(now));
    EXPECT_EQ(copy.rewinds(), flow.rewinds());
    // Written again, the copy has the same state.
    ASSERT_EQ(Written(copy, now), Written(flow, now));
    flow = std::move(copy);  // so that later steps depend on what was read
  }
}

// A pause between writing and reading delays all timers by its length.
TEST_P(FlowState, ReadLater_HasItsTimersLater) {
  const Duration pause = Milliseconds(250);
  for (int i = 0; i < 500; ++i) {
    Step();
    Flow copy;
    ASSERT_EQ(Read(Written(flow, now), now + pause, copy), "");
    if (flow.deadline() == kNever) {
      EXPECT_EQ(copy.deadline(), kNever);
    } else {
      EXPECT_EQ(copy.deadline(), flow.deadline() + pause);
    }
    if (flow.earliest() == kNever) {
      EXPECT_EQ(copy.earliest(), kNever);
    } else {
      EXPECT_EQ(copy.earliest(), flow.earliest() + pause);
    }
    EXPECT_EQ(copy.MaySend(3000, now + pause), flow.MaySend(3000, now));
  }
}

TEST_P(FlowState, EveryTruncation_IsRefused) {
  for (int i = 0; i < 300; ++i) Step();
  const std::vector<uint8_t> whole = Written(flow, now);
  for (size_t length = 0; length < whole.size(); ++length) {
    Flow copy;
    EXPECT_NE(Read({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}, now, copy),
              "")
        << length;
  }
}

std::string NameOf(const ::testing::TestParamInfo<int>& info) {
  return AlgorithmOf(static_cast<CcKind>(info.param)).name;
}
INSTANTIATE_TEST_SUITE_P(Algorithms, FlowState, ::testing::Range(0, static_cast<int>(kCcKinds)),
                         NameOf);

}  // namespace
}  // namespace rocegw::flow
