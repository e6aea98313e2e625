// SPDX-License-Identifier: Apache-2.0
// The rate at which a pool's programs may cost the daemon processes.
#include "gateway/session/descriptors/paced_receiver.h"

#include <gtest/gtest.h>

#include <memory>
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
Duration LeastTime() { return Seconds(1) / PacedReceiver::kPerSecond * (kOver - 1); }

TEST(PacedReceiver, CostlyMessages_WaitBeyondTheBurst) {
  PoolReceivers receivers;
  const auto receiver = receivers.Of(1, std::make_shared<Costs>(true));
  const TimePoint begun = MonotonicNow();
  Take(*receiver, PacedReceiver::kBurst + kOver);
  EXPECT_GE(MonotonicNow() - begun, LeastTime());
}

TEST(PacedReceiver, Discards_WaitBeyondTheBurst) {
  PacedReceiver receiver(std::make_shared<Costs>(false));
  const TimePoint begun = MonotonicNow();
  for (uint32_t i = 0; i < PacedReceiver::kBurst + kOver; ++i) EXPECT_TRUE(receiver.Discard(-1));
  EXPECT_GE(MonotonicNow() - begun, LeastTime());
}

TEST(PacedReceiver, MessagesAsWanted_DoNotWait) {
  PacedReceiver receiver(std::make_shared<Costs>(false));
  const TimePoint begun = MonotonicNow();
  Take(receiver, 100 * PacedReceiver::kBurst);
  EXPECT_LT(MonotonicNow() - begun, Seconds(60)) << "costly ones would take minutes";
}

TEST(PacedReceiver, OtherPool_HasItsOwnRate) {
  PoolReceivers receivers;
  const auto costly = std::make_shared<Costs>(true);
  const auto first = receivers.Of(1, costly);
  const auto second = receivers.Of(2, costly);
  EXPECT_NE(first, second);
  EXPECT_EQ(receivers.Of(1, costly), first) << "a program that comes again gets no new burst";
}

}  // namespace
}  // namespace rocegw::session
