// SPDX-License-Identifier: Apache-2.0
// Division of a worker's time, with a clock that moves only when the test works.
#include "gateway/worker/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

namespace rocegw::worker {
namespace {

int64_t work_clock = 0;
int64_t ReadWorkClock() { return work_clock; }

constexpr uint64_t kPacketBytes = 1000;

// Pool whose queue pairs always have something to send; a packet costs `cost` ns.
struct Greedy {
  Account* account = nullptr;
  int64_t cost = 1000;
  uint64_t sent = 0;  // packets
  int64_t time = 0;   // time that it got, ns
  uint32_t next_qp = 0;
};

class SchedulerTest : public ::testing::Test {
 protected:
  // Children are destroyed before their parents.
  ~SchedulerTest() override {
    while (!shares.empty()) shares.pop_back();
  }
  tenant::Share& AddTenant(uint32_t weight = 1) {
    shares.push_back(std::make_unique<tenant::Share>(&gateway));
    shares.back()->SetWeight(weight);
    return *shares.back();
  }
  tenant::Share& AddPool(tenant::Share& tenant, uint32_t weight = 1) {
    shares.push_back(std::make_unique<tenant::Share>(&tenant));
    shares.back()->SetWeight(weight);
    return *shares.back();
  }
  Greedy& AddGreedy(tenant::Share& pool, uint32_t qps = 1, int64_t cost = 1000,
                    tenant::SlotShare* slot = nullptr) {
    greedy.push_back(std::make_unique<Greedy>());
    Greedy& added = *greedy.back();
    added.account = scheduler.Open(&pool, slot);
    added.cost = cost;
    for (uint32_t i = 0; i < qps; ++i) scheduler.Push(*added.account, {added.next_qp++, 0});
    return added;
  }
  // Adds a pool in debt by that many pieces of 50 us, while two others always have something to
  // send.
  Account* AddDebtor(int pieces) {
    AddGreedy(AddPool(AddTenant()));
    AddGreedy(AddPool(AddTenant()));
    Account* const debtor = scheduler.Open(&AddPool(AddTenant()));
    Round();
    Pump();
    Round();
    for (int i = 0; i < pieces; ++i) {
      scheduler.Mark();
      work_clock += 50'000;
      scheduler.ChargeTo(*debtor);
    }
    EXPECT_TRUE(scheduler.InDebt(*debtor));
    return debtor;
  }
  Greedy& Of(const Account* account) {
    for (const auto& one : greedy)
      if (one->account == account) return *one;
    std::abort();
  }

  // Sends as the worker does; greedy pools always have more. Returns the packets sent.
  uint32_t Pump(uint32_t most = 256) {
    uint32_t sent = 0;
    Scheduler::Turn turn;
    scheduler.Mark();
    while (sent < most && scheduler.NextTurn(now, turn)) {
      Greedy& who = Of(turn.account);
      const auto by_bytes =
          static_cast<uint32_t>((turn.bytes + int64_t{kPacketBytes} - 1) / int64_t{kPacketBytes});
      const uint32_t packets = std::min(turn.packets, by_bytes);
      for (uint32_t i = 0; i < packets; ++i) scheduler.OnSent(*turn.account, kPacketBytes);
      work_clock += packets * who.cost;
      who.time += packets * who.cost;
      who.sent += packets;
      sent += packets;
      scheduler.EndTurn(now, turn);
      scheduler.PushAgain(*turn.account, turn.qp);
    }
    scheduler.Mark();
    scheduler.ChargeNoted();
    return sent;
  }
  void Round(Duration idle = Nanoseconds(200)) {
    work_clock += idle.ns;
    now = TimePoint{work_clock};
    scheduler.BeginRound(now);
  }
  void Run(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Round();
      Pump();
    }
  }

  TimePoint now{work_clock = Seconds(5).ns};
  tenant::Share gateway{nullptr};
  std::vector<std::unique_ptr<tenant::Share>> shares;
  Scheduler scheduler{&ReadWorkClock, 0};
  std::vector<std::unique_ptr<Greedy>> greedy;
};

TEST_F(SchedulerTest, SinglePool_EveryQueuePairOneTurnARound) {
  Greedy& only = AddGreedy(AddPool(AddTenant()), 3);
  Round();
  EXPECT_FALSE(scheduler.contended());
  EXPECT_EQ(Pump(), 3u * 32);
  EXPECT_FALSE(scheduler.InDebt(*only.account));
}

TEST_F(SchedulerTest, TwoTenants_ManyQueuePairsGetNoMoreThanOne) {
  Greedy& crowd = AddGreedy(AddPool(AddTenant()), 1000);
  Greedy& single = AddGreedy(AddPool(AddTenant()), 1);
  Run(2000);
  EXPECT_NEAR(static_cast<double>(single.time) / static_cast<double>(crowd.time), 1.0, 0.03);
}

TEST_F(SchedulerTest, TinyPacketsAgainstBigOnes_TimeIsShared) {
  Greedy& tiny = AddGreedy(AddPool(AddTenant()), 8, 300);
  Greedy& big = AddGreedy(AddPool(AddTenant()), 8, 1700);
  Run(2000);
  EXPECT_NEAR(static_cast<double>(tiny.time) / static_cast<double>(big.time), 1.0, 0.05);
  EXPECT_GT(tiny.sent, 4 * big.sent);
}

TEST_F(SchedulerTest, Weights_DivideTenantsThenPools) {
  tenant::Share& red = AddTenant(3);
  tenant::Share& blue = AddTenant(1);
  Greedy& red_a = AddGreedy(AddPool(red, 1));
  Greedy& red_b = AddGreedy(AddPool(red, 2));
  Greedy& blue_a = AddGreedy(AddPool(blue, 100));
  Run(3000);
  const auto all = static_cast<double>(red_a.time + red_b.time + blue_a.time);
  EXPECT_NEAR(static_cast<double>(red_a.time) / all, 0.25, 0.02);
  EXPECT_NEAR(static_cast<double>(red_b.time) / all, 0.50, 0.02);
  EXPECT_NEAR(static_cast<double>(blue_a.time) / all, 0.25, 0.02);
}

TEST_F(SchedulerTest, WeightChanged_CountsFromNowOn) {
  tenant::Share& red = AddTenant(1);
  Greedy& a = AddGreedy(AddPool(red));
  Greedy& b = AddGreedy(AddPool(AddTenant(1)));
  Run(500);
  red.SetWeight(4);
  a.time = b.time = 0;
  Run(2000);
  EXPECT_NEAR(static_cast<double>(a.time) / static_cast<double>(b.time), 4.0, 0.2);
}

TEST_F(SchedulerTest, PartOfAnIdlePool_GoesToItsTenantsOthersFirst) {
  tenant::Share& red = AddTenant();
  Greedy& red_a = AddGreedy(AddPool(red));
  Account* const light = scheduler.Open(&AddPool(red));
  Greedy& blue = AddGreedy(AddPool(AddTenant()));
  for (int i = 0; i < 2000; ++i) {
    Round();
    // Active, but with almost no work.
    scheduler.Mark();
    work_clock += 10;
    scheduler.ChargeTo(*light);
    Pump();
  }
  EXPECT_NEAR(static_cast<double>(red_a.time) / static_cast<double>(blue.time), 1.0, 0.05);
}

TEST_F(SchedulerTest, OtherWork_ComesOffWhatItMaySend) {
  Greedy& busy = AddGreedy(AddPool(AddTenant()), 4);
  Greedy& plain = AddGreedy(AddPool(AddTenant()), 4);
  int64_t other = 0;
  for (int i = 0; i < 3000; ++i) {
    Round();
    scheduler.Mark();
    work_clock += 8000;
    other += 8000;
    scheduler.ChargeTo(*busy.account);
    Pump();
  }
  EXPECT_NEAR(static_cast<double>(busy.time + other) / static_cast<double>(plain.time), 1.0, 0.05);
}

TEST_F(SchedulerTest, ReceivedPackets_AreChargedByTheirPart) {
  Greedy& receives = AddGreedy(AddPool(AddTenant()), 4);
  Greedy& plain = AddGreedy(AddPool(AddTenant()), 4);
  int64_t receiving = 0;
  for (int i = 0; i < 3000; ++i) {
    Round();
    scheduler.Mark();
    scheduler.Note(*receives.account, 30, 30 * 1024);
    scheduler.Note(*plain.account, 10, 10 * 1024);
    work_clock += 12000;
    receiving += 12000;
    scheduler.ChargeNoted();
    Pump();
  }
  const auto with = static_cast<double>(receives.time + receiving * 3 / 4);
  const auto without = static_cast<double>(plain.time + receiving / 4);
  EXPECT_NEAR(with / without, 1.0, 0.05);
}

TEST_F(SchedulerTest, PoolThatComesNowAndThen_IsServedWithinARound) {
  AddGreedy(AddPool(AddTenant()), 100);
  Greedy& seldom = AddGreedy(AddPool(AddTenant()), 0);
  int64_t worst = 0;
  for (int i = 0; i < 1000; ++i) {
    Round();
    Pump();
    Round();
    Pump();
    const int64_t asked = work_clock;
    scheduler.Push(*seldom.account, {7, 0});
    const uint64_t before = seldom.sent;
    Scheduler::Turn turn;
    for (int rounds = 0; seldom.sent == before && rounds < 10; ++rounds) {
      Round();
      scheduler.Mark();
      while (scheduler.NextTurn(now, turn)) {
        Greedy& who = Of(turn.account);
        const uint32_t packets = &who == &seldom ? 1 : turn.packets;
        for (uint32_t k = 0; k < packets; ++k) scheduler.OnSent(*turn.account, kPacketBytes);
        work_clock += packets * who.cost;
        who.sent += packets;
        scheduler.EndTurn(now, turn);
        if (&who == &seldom) {
          worst = std::max(worst, work_clock - asked);
        } else {
          scheduler.PushAgain(*turn.account, turn.qp);
        }
      }
    }
    ASSERT_GT(seldom.sent, before);
  }
  EXPECT_LT(worst, 60'000);
}

// A program that posts its next request after a completion is idle in most rounds.
TEST_F(SchedulerTest, PoolThatPauses_GetsItsPartAllTheSame) {
  Greedy& greedy_one = AddGreedy(AddPool(AddTenant()), 8, 300);
  Greedy& pauses = AddGreedy(AddPool(AddTenant()), 0, 300);
  bool posted = false;
  for (int i = 0; i < 30'000; ++i) {
    // Its need is measured first.
    if (i == 600) greedy_one.time = pauses.time = 0;
    Round();
    // Its request takes up to 16 packets; the next one comes some rounds after completion.
    if (!posted && i % 3 == 0) {
      scheduler.Push(*pauses.account, {7, 0});
      posted = true;
    }
    scheduler.Mark();
    Scheduler::Turn turn;
    while (scheduler.NextTurn(now, turn)) {
      Greedy& who = Of(turn.account);
      const uint32_t packets = &who == &pauses ? std::min(turn.packets, 16u) : turn.packets;
      for (uint32_t k = 0; k < packets; ++k) scheduler.OnSent(*turn.account, kPacketBytes);
      work_clock += packets * who.cost;
      who.time += packets * who.cost;
      scheduler.EndTurn(now, turn);
      if (&who == &pauses) {
        posted = false;
      } else {
        scheduler.PushAgain(*turn.account, turn.qp);
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(pauses.time) / static_cast<double>(greedy_one.time), 1.0, 0.05);
}

TEST_F(SchedulerTest, PoolThatNeedsLittle_TakesNothingElseFromTheOther) {
  Greedy& greedy_one = AddGreedy(AddPool(AddTenant()), 4, 1000);
  Account* const light = scheduler.Open(&AddPool(AddTenant()));
  const int64_t began = work_clock;
  for (int i = 0; i < 5000; ++i) {
    Round(Nanoseconds(500));
    scheduler.Mark();
    work_clock += 100;
    scheduler.ChargeTo(*light);
    Pump();
  }
  const auto all = static_cast<double>(work_clock - began);
  EXPECT_GT(static_cast<double>(greedy_one.time) / all, 0.75);
}

// The pool has doorbells only, so only Wait shows that it is still active.
TEST_F(SchedulerTest, PoolInDeepDebt_ComesOutOfItWhileItWaits) {
  Account* const debtor = AddDebtor(8);
  const TimePoint began = now;
  while (scheduler.InDebt(*debtor) && now - began < Milliseconds(10)) {
    scheduler.Wait(*debtor);
    Pump();
    Round();
  }
  EXPECT_FALSE(scheduler.InDebt(*debtor));
  EXPECT_GT((now - began).ns, Milliseconds(1).ns);
  EXPECT_TRUE(debtor->active);
  scheduler.Close(debtor);
}

TEST_F(SchedulerTest, PoolThatRests_OwesNothing) {
  Account* const debtor = AddDebtor(2);
  Round();
  ASSERT_TRUE(scheduler.InDebt(*debtor));
  Round(Milliseconds(2));
  EXPECT_FALSE(scheduler.InDebt(*debtor));
  scheduler.Close(debtor);
}

// Both belong to one tenant. The resting one has saved its maximum, so idle time goes to the
// waiting one.
TEST_F(SchedulerTest, PoolBesideOneThatRestsMostly_DoesNotWaitForIt) {
  tenant::Share& tenant = AddTenant();
  Account* const eager = scheduler.Open(&AddPool(tenant));
  Account* const seldom = scheduler.Open(&AddPool(tenant));
  int64_t worked = 0;
  constexpr int kRounds = 20'000;
  for (int i = 0; i < kRounds; ++i) {
    Round(Nanoseconds(1000));
    scheduler.Mark();
    if (i % 100 == 0) {
      work_clock += 1000;
      scheduler.ChargeTo(*seldom);
    }
    if (scheduler.InDebt(*eager)) {
      scheduler.Wait(*eager);
      continue;
    }
    work_clock += 1000;
    worked += 1000;
    scheduler.ChargeTo(*eager);
  }
  // In a round in which it waits, the worker is idle.
  EXPECT_GT(worked, int64_t{kRounds} * 1000 * 2 / 5);
  scheduler.Close(eager);
  scheduler.Close(seldom);
}

TEST_F(SchedulerTest, Interruption_IsNobodysDebt) {
  Greedy& interrupted = AddGreedy(AddPool(AddTenant()), 4, 200);
  Greedy& plain = AddGreedy(AddPool(AddTenant()), 4, 200);
  Run(1000);
  interrupted.time = plain.time = 0;
  for (int i = 0; i < 300; ++i) {
    Round();
    scheduler.Mark();
    Scheduler::Turn turn;
    while (scheduler.NextTurn(now, turn)) {
      Greedy& who = Of(turn.account);
      for (uint32_t k = 0; k < turn.packets; ++k) scheduler.OnSent(*turn.account, kPacketBytes);
      work_clock += turn.packets * who.cost;
      who.time += turn.packets * who.cost;
      // Occasionally another thread has the core for longer than a turn.
      if (&who == &interrupted && i % 10 == 0) work_clock += 60'000;
      scheduler.EndTurn(now, turn);
      scheduler.PushAgain(*turn.account, turn.qp);
    }
  }
  EXPECT_GT(static_cast<double>(interrupted.time) / static_cast<double>(plain.time), 0.75);
}

int64_t run_clock = 0;
int64_t ReadRunClock() { return run_clock; }

// A piece of work may take long: only what the thread has not run is an interruption.
TEST_F(SchedulerTest, LongWork_IsChargedAsFarAsTheThreadHasRun) {
  Scheduler measured{&ReadWorkClock, 0, &ReadRunClock};
  Account* const one = measured.Open(&AddPool(AddTenant()));
  Account* const other = measured.Open(&AddPool(AddTenant()));
  const auto round = [&] {
    for (Account* const account : {one, other}) measured.ChargeTo(*account);
    measured.BeginRound(now = now + Microseconds(10));
  };
  const auto charged_for = [&](int64_t passed, int64_t run) {
    // The thread slept before: that is no interruption of what follows.
    work_clock += 5'000'000;
    measured.Mark();
    round();
    round();
    measured.Mark();
    work_clock += passed;
    run_clock += run;
    measured.ChargeTo(*one);
    return measured.charged();
  };
  round();
  round();
  ASSERT_TRUE(measured.contended());
  EXPECT_EQ(charged_for(90'000, 0), 90'000) << "short enough to be believed";
  EXPECT_EQ(charged_for(300'000, 300'000), 300'000);
  EXPECT_EQ(charged_for(300'000, 120'000), 120'000);
  EXPECT_EQ(charged_for(300'000, 0), 100'000);
  measured.Close(one);
  measured.Close(other);
}

TEST_F(SchedulerTest, QueuePairsOfAPool_HaveTheirTurnsTogether) {
  Greedy& a = AddGreedy(AddPool(AddTenant()), 50, 20);
  Greedy& b = AddGreedy(AddPool(AddTenant()), 50, 20);
  Run(100);
  Round();
  scheduler.Mark();
  uint32_t turns = 0;
  uint32_t changes = 0;
  const Account* last = nullptr;
  for (Scheduler::Turn turn; turns < 40 && scheduler.NextTurn(now, turn); ++turns) {
    changes += last != nullptr && last != turn.account ? 1 : 0;
    last = turn.account;
    for (uint32_t k = 0; k < 8; ++k) scheduler.OnSent(*turn.account, kPacketBytes);
    work_clock += 8 * Of(turn.account).cost;
    scheduler.EndTurn(now, turn);
    scheduler.PushAgain(*turn.account, turn.qp);
  }
  EXPECT_GT(turns, 10u);
  EXPECT_LE(changes, 2u);
  EXPECT_GT(a.sent + b.sent, 0u);
}

TEST_F(SchedulerTest, Alone_NothingIsForbiddenByDebt) {
  Greedy& alone = AddGreedy(AddPool(AddTenant()));
  Greedy& other = AddGreedy(AddPool(AddTenant()));
  Run(100);
  scheduler.Close(other.account);
  for (int i = 0; i < 3; ++i) {
    Round();
    EXPECT_EQ(Pump(), 32u);
  }
  EXPECT_FALSE(scheduler.contended());
  EXPECT_GT(alone.sent, 0u);
}

TEST_F(SchedulerTest, Peak_IsKeptOnAverage) {
  tenant::Share& pool = AddPool(AddTenant());
  tenant::Quota quota;
  quota.peak[tenant::Rate::kBytes] = 100'000'000;
  pool.SetRates(quota);
  Greedy& limited = AddGreedy(pool, 4, 100);
  const int64_t began = work_clock;
  while (work_clock - began < Seconds(1).ns) {
    Round();
    if (Pump() == 0) {
      ASSERT_FALSE(scheduler.HasReady(now));
      const TimePoint opens = scheduler.NextOpening();
      ASSERT_NE(opens, kNever);
      ASSERT_GT(opens, now);
      work_clock = opens.ns;
    }
  }
  // The first ten milliseconds' worth are a burst.
  EXPECT_NEAR(static_cast<double>(limited.sent * kPacketBytes), 101e6, 1e6);
  EXPECT_GT(pool.held_back_by_bytes.load(), 100u);
  EXPECT_EQ(pool.sent_bytes.load(), limited.sent * kPacketBytes);
  EXPECT_EQ(pool.sent_packets.load(), limited.sent);
}

// A claim of a pod has a part of the pool's bandwidth.
TEST_F(SchedulerTest, SlotsRate_HoldsForItAlone_AndThePoolsForAllOfThem) {
  tenant::Share& pool = AddPool(AddTenant());
  tenant::Quota quota;
  quota.peak[tenant::Rate::kBytes] = 100'000'000;
  pool.SetRates(quota);
  tenant::SlotShare slow(pool, {.bytes_per_second = 10'000'000}, "attach.sock");
  tenant::SlotShare fast(pool, {.bytes_per_second = 60'000'000}, "attach.sock");
  Greedy& ten = AddGreedy(pool, 4, 100, &slow);
  Greedy& sixty = AddGreedy(pool, 1, 100, &fast);
  Greedy& rest = AddGreedy(pool, 1, 100);
  const int64_t began = work_clock;
  while (work_clock - began < Seconds(1).ns) {
    Round();
    if (Pump() == 0) work_clock = std::min(scheduler.NextOpening().ns, began + Seconds(1).ns);
  }
  const auto megabytes = [](const Greedy& of) {
    return static_cast<double>(of.sent * kPacketBytes) / 1e6;
  };
  EXPECT_NEAR(megabytes(ten), 10, 0.5);
  EXPECT_LE(megabytes(sixty), 61);
  EXPECT_NEAR(megabytes(ten) + megabytes(sixty) + megabytes(rest), 101, 1);
  EXPECT_EQ(pool.sent_bytes.load(), (ten.sent + sixty.sent + rest.sent) * kPacketBytes);
}

TEST_F(SchedulerTest, ReachedRate_NamesTheSlot) {
  tenant::Share& pool = AddPool(AddTenant());
  tenant::SlotShare slot(pool, {.bytes_per_second = 1'000'000}, "attach.sock");
  AddGreedy(pool, 1, 100, &slot);
  for (int i = 0; i < 20; ++i) {
    Round();
    Pump();
  }
  const auto reached = scheduler.TakeHeldBack();
  ASSERT_EQ(reached.size(), 1u);
  EXPECT_EQ(reached[0].pool, &pool);
  EXPECT_EQ(reached[0].by, &slot.bytes);
  EXPECT_GT(pool.held_back_by_bytes.load(), 0u);
}

// Claims of one pool must not get time at the cost of the tenant's other pools.
TEST_F(SchedulerTest, SlotsOfAPool_DivideItsWeight) {
  tenant::Share& red = AddTenant();
  tenant::Share& claimed = AddPool(red);
  std::vector<std::unique_ptr<tenant::SlotShare>> slots;
  std::vector<Greedy*> of_slots;
  for (int i = 0; i < 4; ++i) {
    slots.push_back(
        std::make_unique<tenant::SlotShare>(claimed, tenant::SlotLimits{.qps = 1}, "attach.sock"));
    of_slots.push_back(&AddGreedy(claimed, 1, 1000, slots.back().get()));
  }
  Greedy& other = AddGreedy(AddPool(red), 1, 1000);
  Run(4000);
  int64_t together = 0;
  for (const Greedy* one : of_slots) together += one->time;
  EXPECT_NEAR(static_cast<double>(together) / static_cast<double>(other.time), 1.0, 0.05);
  for (const Greedy* one : of_slots)
    EXPECT_NEAR(static_cast<double>(one->time) * 4 / static_cast<double>(together), 1.0, 0.1);
}

TEST_F(SchedulerTest, TenantsPeak_HoldsForItsPoolsTogether) {
  tenant::Share& red = AddTenant();
  tenant::Quota quota;
  quota.peak[tenant::Rate::kPackets] = 10'000;
  red.SetRates(quota);
  Greedy& a = AddGreedy(AddPool(red), 1, 100);
  Greedy& b = AddGreedy(AddPool(red), 1, 100);
  Greedy& free = AddGreedy(AddPool(AddTenant()), 1, 1000);
  const int64_t began = work_clock;
  while (work_clock - began < Seconds(1).ns) {
    Round();
    Pump();
  }
  EXPECT_NEAR(static_cast<double>(a.sent + b.sent), 10'100, 200);
  EXPECT_GT(free.time, Milliseconds(900).ns);
}

TEST_F(SchedulerTest, Committed_GoesFirstWhateverTheWeights) {
  tenant::Share& small = AddPool(AddTenant(1));
  tenant::Quota quota;
  quota.committed[tenant::Rate::kBytes] = 400'000'000;
  small.SetRates(quota);
  Greedy& promised = AddGreedy(small, 1, 1000);
  Greedy& heavy = AddGreedy(AddPool(AddTenant(1000)), 100, 1000);
  const int64_t began = work_clock;
  while (work_clock - began < Seconds(1).ns) {
    Round();
    Pump();
  }
  EXPECT_GT(promised.sent * kPacketBytes, 390'000'000u);
  EXPECT_LT(promised.sent * kPacketBytes, 430'000'000u);
  EXPECT_GT(heavy.time, Milliseconds(500).ns);
}

TEST_F(SchedulerTest, ReadsCountWithWhatTheyAskFor) {
  tenant::Share& pool = AddPool(AddTenant());
  tenant::Quota quota;
  quota.peak[tenant::Rate::kBytes] = 1'000'000;
  pool.SetRates(quota);
  Greedy& reader = AddGreedy(pool);
  Round();
  Scheduler::Turn turn;
  ASSERT_TRUE(scheduler.NextTurn(now, turn));
  EXPECT_LE(turn.bytes, 2000);
  scheduler.OnSent(*reader.account, 74);
  reader.account->unpaid_bytes += 128 * 1024;
  scheduler.EndTurn(now, turn);
  scheduler.Push(*reader.account, turn.qp);
  EXPECT_FALSE(scheduler.NextTurn(now, turn));
  // Beyond the burst of ten milliseconds it pays for every byte.
  EXPECT_NEAR(static_cast<double>((scheduler.NextOpening() - now).ns), 121e6, 1e6);
}

TEST_F(SchedulerTest, LinkSlowerThanTheWorker_BytesAreShared) {
  Scheduler by_link(&ReadWorkClock, 125'000'000);  // 8 ns a byte
  Account* const big = by_link.Open(&AddPool(AddTenant()));
  Account* const tiny = by_link.Open(&AddPool(AddTenant()));
  by_link.Push(*big, {1, 0});
  by_link.Push(*tiny, {2, 0});
  std::map<Account*, uint64_t> bytes;
  for (int i = 0; i < 3000; ++i) {
    work_clock += 200;
    by_link.BeginRound(TimePoint{work_clock});
    Scheduler::Turn turn;
    by_link.Mark();
    for (int turns = 0; turns < 8 && by_link.NextTurn(TimePoint{work_clock}, turn); ++turns) {
      const uint64_t size = turn.account == big ? 4000 : 500;
      for (uint32_t k = 0; k < turn.packets; ++k) by_link.OnSent(*turn.account, size);
      work_clock += turn.packets * 500;
      bytes[turn.account] += turn.packets * size;
      by_link.EndTurn(TimePoint{work_clock}, turn);
      by_link.PushAgain(*turn.account, turn.qp);
    }
  }
  EXPECT_NEAR(static_cast<double>(bytes[big]) / static_cast<double>(bytes[tiny]), 1.0, 0.15);
}

TEST_F(SchedulerTest, Closed_LeavesNothingBehind) {
  tenant::Share& pool = AddPool(AddTenant());
  Account* const first = scheduler.Open(&pool);
  EXPECT_EQ(scheduler.Open(&pool), first);
  scheduler.Push(*first, {1, 0});
  scheduler.Close(first);
  EXPECT_TRUE(scheduler.HasReady(now)) << "a session is left";
  scheduler.Close(first);
  EXPECT_FALSE(scheduler.HasReady(now));
  EXPECT_EQ(scheduler.NextOpening(), kNever);
  Round();
  EXPECT_EQ(Pump(), 0u);
}

TEST_F(SchedulerTest, WithoutAClock_TurnsGoRound) {
  Scheduler plain(nullptr, 0);
  Account* const a = plain.Open(&AddPool(AddTenant()));
  Account* const b = plain.Open(nullptr);
  for (uint32_t i = 0; i < 3; ++i) plain.Push(*a, {i, 0});
  plain.Push(*b, {9, 0});
  plain.BeginRound(now);
  Scheduler::Turn turn;
  std::vector<uint32_t> order;
  while (plain.NextTurn(now, turn)) order.push_back(turn.qp.index);
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 9, 1, 2}));
}

}  // namespace
}  // namespace rocegw::worker
