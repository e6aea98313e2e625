// SPDX-License-Identifier: Apache-2.0
// Queue pair numbers and keys after a hand-over: what rested rests on, and the secret that orders
// numbers is the same.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "gateway/session/reserve/key_generator.h"
#include "gateway/session/reserve/qpn_allocator.h"

namespace rocegw::session {
namespace {

using hand_over::StateStream;

constexpr TimePoint kNow{1'000'000'000};
constexpr WorkerIndex kWorker{5};
constexpr size_t kWorkers = 64;  // with a bucket each

template <typename Object>
void HandOver(Object& from, Object& to) {
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  StateStream out(bytes, kNow, versions);
  from.HandOver(out);
  ASSERT_TRUE(out.ok()) << out.failure();
  StateStream in(bytes, kNow);
  to.HandOver(in);
  ASSERT_TRUE(in.ok() && in.at_end()) << in.failure();
}

QpnAllocator NewAllocator(Random& random) {
  return {port::SteeringTable(kWorkers), kWorkers, random, Seconds(2)};
}

TEST(NumbersHandOver, NewQpns_AreThoseThatTheOldGatewayWouldHaveAssigned) {
  Random random;
  QpnAllocator old = NewAllocator(random);
  QpnAllocator fresh = NewAllocator(random);
  std::vector<Qpn> used;
  used.reserve(100);
  for (int i = 0; i < 100; ++i) used.push_back(*old.Take(kWorker, kNow));
  HandOver(old, fresh);
  fresh.KeepOnly(used, kNow);
  EXPECT_EQ(fresh.in_use(), used.size());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(fresh.Take(kWorker, kNow), old.Take(kWorker, kNow));
}

TEST(NumbersHandOver, QpnsInUseAndResting_AreNotAssigned_UntilTheyHaveRested) {
  Random random;
  QpnAllocator old = NewAllocator(random);
  QpnAllocator fresh = NewAllocator(random);
  std::vector<Qpn> all;
  while (const auto qpn = old.Take(kWorker, kNow)) all.push_back(*qpn);
  const Qpn free_soon = all[0], free_later = all[1], of_a_dead_program = all[2];
  old.Give(free_soon, kNow - Seconds(1));
  old.Give(free_later, kNow - Seconds(1));
  old.RestUntil(free_later, kNow + Seconds(60), kNow);
  HandOver(old, fresh);
  // A queue pair that ended meanwhile is not among those in use.
  fresh.KeepOnly({all.begin() + 3, all.end()}, kNow);
  EXPECT_FALSE(fresh.Take(kWorker, kNow + Milliseconds(999)).has_value());
  EXPECT_EQ(fresh.Take(kWorker, kNow + Milliseconds(1000)), free_soon);
  EXPECT_FALSE(fresh.Take(kWorker, kNow + Milliseconds(1999)).has_value());
  EXPECT_EQ(fresh.Take(kWorker, kNow + Milliseconds(2000)), of_a_dead_program);
  EXPECT_FALSE(fresh.Take(kWorker, kNow + Seconds(59)).has_value());
  EXPECT_EQ(fresh.Take(kWorker, kNow + Seconds(61)), free_later);
}

TEST(NumbersHandOver, KeysThatRest_RestOn) {
  Random random;
  KeyGenerator old(random);
  KeyGenerator fresh(random);
  const MemoryKey in_use = old.Take();
  const MemoryKey resting = old.Take();
  const MemoryKey window = old.TakeForWindow();
  const MemoryKey resting_window = old.TakeForWindow();
  old.Give(resting);
  old.GiveFromWindow(resting_window);
  HandOver(old, fresh);
  EXPECT_FALSE(fresh.Adopt(resting)) << "another region could have it";
  EXPECT_FALSE(fresh.AdoptWindow(resting_window));
  EXPECT_TRUE(fresh.Adopt(in_use));
  EXPECT_TRUE(fresh.AdoptWindow(window));
  EXPECT_EQ(fresh.in_use(), 1u);
  // The oldest are free again when as many others rest as before.
  for (size_t i = 0; i < KeyGenerator::kResting; ++i) fresh.Give(fresh.Take());
  EXPECT_TRUE(fresh.Adopt(resting));
}

}  // namespace
}  // namespace rocegw::session
