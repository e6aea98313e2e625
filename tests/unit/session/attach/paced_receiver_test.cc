// SPDX-License-Identifier: Apache-2.0
// The turns in which a pool's programs may cost the daemon processes.
#include "gateway/session/descriptors/paced_receiver.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "gateway/base/timing/monotonic_clock.h"

namespace rocegw::session {
namespace {

constexpr uint32_t kOver = 20;  // messages beyond the burst

class Costs final : public DescriptorReceiver {
 public:
  explicit Costs(bool costly) : costly_(costly) {}
  PassedDescriptor Take(int, const WantedDescriptor&, std::vector<UniqueFd>&) override {
    PassedDescriptor passed;
    passed.received = true;
    passed.costly = costly_;
    return passed;
  }
  void Finish(std::vector<UniqueFd>&) override {}
  bool Discard(int) override { return true; }
  void Keep(int) override {}
  void Release(int) override {}

 private:
  const bool costly_;
};

void Take(DescriptorReceiver& receiver, uint32_t messages) {
  std::vector<UniqueFd> left;
  for (uint32_t i = 0; i < messages; ++i)
    EXPECT_TRUE(receiver.Take(-1, {PassedKind::kFile}, left).received);
}

// Least time of the messages beyond the burst, less one that came with the passing time.
Duration LeastTime() { return Seconds(1) / DescriptorTurns::kPerSecond * (kOver - 1); }

class PacedReceiverTest : public ::testing::Test {
 protected:
  std::shared_ptr<DescriptorReceiver> Of(uint64_t pool, bool costly) {
    return receivers_.Of(pool, std::make_shared<Costs>(costly));
  }
  // Makes the pool's connections wait for seconds.
  void UseUp(uint64_t pool) {
    receivers_.SetPaced(false);
    Take(*Of(pool, true), DescriptorTurns::kBurst + 60 * DescriptorTurns::kPerSecond);
    receivers_.SetPaced(true);
  }
  PoolReceivers receivers_;
};

TEST_F(PacedReceiverTest, CostlyMessages_WaitBeyondTheBurst) {
  const TimePoint begun = MonotonicNow();
  Take(*Of(1, true), DescriptorTurns::kBurst + kOver);
  EXPECT_GE(MonotonicNow() - begun, LeastTime());
}

TEST_F(PacedReceiverTest, CostlyMessagesOfManyConnections_CountTogether) {
  const TimePoint begun = MonotonicNow();
  for (uint32_t i = 0; i < DescriptorTurns::kBurst; ++i) Take(*Of(1, true), 1);
  Take(*Of(1, true), kOver);
  EXPECT_GE(MonotonicNow() - begun, LeastTime());
}

TEST_F(PacedReceiverTest, Discards_WaitBeyondTheBurst) {
  const auto receiver = Of(1, false);
  const TimePoint begun = MonotonicNow();
  for (uint32_t i = 0; i < DescriptorTurns::kBurst + kOver; ++i) EXPECT_TRUE(receiver->Discard(-1));
  EXPECT_GE(MonotonicNow() - begun, LeastTime());
}

TEST_F(PacedReceiverTest, MessagesAsWanted_WaitForNobody) {
  UseUp(1);
  const TimePoint begun = MonotonicNow();
  Take(*Of(1, false), 1000);
  EXPECT_LT(MonotonicNow() - begun, Seconds(30)) << "the next turn is a minute away";
}

TEST_F(PacedReceiverTest, OtherPool_HasItsOwnTurns) {
  UseUp(1);
  const TimePoint begun = MonotonicNow();
  EXPECT_TRUE(Of(2, true)->Discard(-1));
  EXPECT_LT(MonotonicNow() - begun, Seconds(30)) << "the next turn of the first is a minute away";
}

TEST_F(PacedReceiverTest, NotPaced_WaitsEnd) {
  UseUp(1);
  const auto receiver = Of(1, true);
  const TimePoint begun = MonotonicNow();
  std::thread waits([&] { EXPECT_TRUE(receiver->Discard(-1)); });
  receivers_.SetPaced(false);
  waits.join();
  EXPECT_TRUE(receiver->Discard(-1));
  EXPECT_LT(MonotonicNow() - begun, Seconds(30)) << "the next turn is a minute away";
}

}  // namespace
}  // namespace rocegw::session
