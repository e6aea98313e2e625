// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/schedule/time_share.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocegw::worker {
namespace {

constexpr double kWhole = TimeShare::kWhole;

TEST(TimeShare, NothingLearned_PartsByWeight) {
  TimeShare a;
  TimeShare b;
  a.weight = 3;
  Divide(std::vector{&a, &b}, false);
  EXPECT_NEAR(a.part / kWhole, 0.75, 0.001);
  EXPECT_NEAR(b.part / kWhole, 0.25, 0.001);
  HandOut(std::vector{&a, &b}, 8000, 0);
  EXPECT_NEAR(static_cast<double>(a.credit), 6000, 2);
  EXPECT_NEAR(static_cast<double>(b.credit), 2000, 2);
}

TEST(TimeShare, UsesLittle_OthersGetTheRest) {
  TimeShare light;
  TimeShare heavy;
  light.used = 5'000;
  heavy.used = 95'000;
  heavy.Wait();
  Divide(std::vector{&light, &heavy}, true);
  EXPECT_GT(light.part / kWhole, 0.05);
  EXPECT_LT(light.part / kWhole, 0.10);
  EXPECT_NEAR((light.part + heavy.part) / kWhole, 1.0, 0.001);
}

TEST(TimeShare, UsesNearlyItsPart_KeepsAllOfIt) {
  TimeShare pauses;
  TimeShare heavy;
  pauses.used = 42'000;
  heavy.used = 58'000;
  heavy.Wait();
  Divide(std::vector{&pauses, &heavy}, true);
  EXPECT_NEAR(pauses.part / kWhole, 0.5, 0.001);
}

TEST(TimeShare, UsedLittleBecauseItHadToWait_KeepsItsPart) {
  TimeShare held_up;
  TimeShare heavy;
  held_up.used = 1'000;
  held_up.Wait();
  heavy.used = 99'000;
  Divide(std::vector{&held_up, &heavy}, true);
  EXPECT_NEAR(held_up.part / kWhole, 0.5, 0.001);
}

TEST(TimeShare, InDebtBesideSomebodyWithTimeLeft_WaitsUnlessTimeGoesByIdle) {
  TimeShare debtor;
  TimeShare other;
  const std::vector both{&debtor, &other};
  Divide(both, false);
  debtor.credit = -6'000;
  other.credit = 3'000;
  debtor.Wait();
  HandOut(both, 2'000, 0);
  EXPECT_EQ(debtor.credit, -5'000);
  EXPECT_EQ(other.credit, 4'000);
  HandOut(both, 0, 5'001);
  EXPECT_GT(debtor.credit, 0);
  EXPECT_EQ(other.credit, 4'000);
}

TEST(TimeShare, AllInDebt_GoAheadAsFarAsTheFirst) {
  TimeShare a;
  TimeShare b;
  const std::vector both{&a, &b};
  Divide(both, false);
  a.credit = -50'000;
  b.credit = -90'000;
  HandOut(both, 0, 0);
  EXPECT_LE(a.credit, 0) << "nobody waits";
  a.Wait();
  b.Wait();
  HandOut(both, 0, 0);
  EXPECT_GT(a.credit, 0);
  EXPECT_LT(b.credit, -30'000);
  EXPECT_NEAR(static_cast<double>(a.credit - b.credit), 40'000, 2);
}

TEST(TimeShare, InDeepDebt_AnotherThatIsOnlyOutOfTimeComesFirst) {
  TimeShare deep;
  TimeShare other;
  const std::vector both{&deep, &other};
  Divide(both, false);
  deep.credit = -300'000;
  deep.Wait();
  HandOut(both, 0, 0);
  EXPECT_GT(other.credit, 0);
  EXPECT_LT(other.credit, 10'000);
  EXPECT_LT(deep.credit, -290'000);
}

TEST(TimeShare, NothingToDo_SavesLittle) {
  TimeShare a;
  TimeShare b;
  const std::vector both{&a, &b};
  Divide(both, false);
  for (int i = 0; i < 100; ++i) HandOut(both, 10'000, 0);
  EXPECT_LE(a.credit, 20'000);
}

}  // namespace
}  // namespace rocegw::worker
