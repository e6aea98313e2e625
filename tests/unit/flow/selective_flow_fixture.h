// SPDX-License-Identifier: Apache-2.0
// A flow with selective repeat and what its test tells it: acknowledgements, time.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "gateway/flow/selective_flow.h"

namespace rocegw::flow {

inline constexpr uint32_t kBytes = 1000;
inline constexpr TimePoint kSendStart{1'000'000'000};
inline constexpr Duration kRtt = Microseconds(100);

class SelectiveFlowTest : public ::testing::Test, private AckedSink {
 protected:
  SelectiveFlowTest() { Start(SelectiveConfig{}); }

  void Start(const SelectiveConfig& config, uint32_t psn = 100) {
    first = psn;
    flow.Start(config, Psn(psn), now);
  }
  void Send(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const FrameRef frame{.owner = SlotHandle{1, 2},
                           .message = 5,
                           .offset = flow.next().value,
                           .length = 9,
                           .kind = 3,
                           .extra = 4};
      flow.OnSent(pool, frame, kBytes, now);
    }
  }
  // Returns an acknowledgement of everything before `next` and of the listed PSNs.
  AckInfo Info(uint32_t next, const std::vector<uint32_t>& beyond) {
    bitmap.assign(beyond.empty() ? 0 : 128, 0);
    for (const uint32_t psn : beyond) {
      const auto bit = static_cast<uint32_t>(PsnDistance(Psn(psn), Psn(next + 1)));
      bitmap[bit / 32] |= 1u << bit % 32;
    }
    return {.next = Psn(next), .bitmap = bitmap, .room_packets = kMaxFlowPackets};
  }
  bool Ack(uint32_t next, const std::vector<uint32_t>& beyond = {}, uint32_t probe = 0) {
    AckInfo info = Info(next, beyond);
    info.probe = probe;
    return flow.OnAck(pool, info, now, *this);
  }
  bool Take(const AckInfo& info) { return flow.OnAck(pool, info, now, *this); }
  // Returns the lost packets in the order in which the flow returns them, and sends them again.
  std::vector<uint32_t> Resend() {
    std::vector<uint32_t> psns;
    Psn psn;
    FrameRef frame;
    uint32_t bytes = 0;
    while (flow.NextLost(psn, frame, bytes)) {
      EXPECT_EQ(frame.offset, psn.value);
      EXPECT_EQ(bytes, kBytes);
      psns.push_back(psn.value);
      flow.OnResent(psn, now);
    }
    return psns;
  }
  void Wait(Duration by) { now = now + by; }
  // Reduces the flow to its resting state for that time.
  void RestFor(Duration time, const CcConfig& cc) {
    const RestingFlow resting = flow.Rest();
    flow.Stop();
    Wait(time);
    flow.Resume(resting, cc, now);
  }
  // Makes a round trip of kRtt known, with nothing in flight afterwards.
  void LearnRtt() {
    Send(1);
    Wait(kRtt);
    Ack(flow.next().value);
    acked.clear();
  }

  LedgerPool pool;
  SelectiveFlow flow;
  TimePoint now = kSendStart;
  uint32_t first = 0;
  std::map<uint32_t, int> acked;
  std::vector<uint32_t> bitmap;

 private:
  void OnFrameAcked(Psn psn, const FrameRef& frame) override {
    ++acked[psn.value];
    EXPECT_EQ(frame.offset, psn.value);
    EXPECT_EQ(frame.owner, (WorkerObject(SlotHandle{1, 2})));
    EXPECT_EQ(frame.message, 5u);
    EXPECT_EQ(frame.length, 9);
    EXPECT_EQ(frame.kind, 3);
    EXPECT_EQ(frame.extra, 4);
  }
};

using Psns = std::vector<uint32_t>;

}  // namespace rocegw::flow
