// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/schedule/scheduler.h"

#include <algorithm>
#include <utility>

namespace rocegw::worker {
namespace {

constexpr uint32_t kPacketsPerTurn = 32;
// Shortest turn in ns, if there is enough to send. It may exceed the remaining credit and then
// leaves a debt.
constexpr int64_t kLeastTurn = 4'000;
// Idle time up to 1/kPauses of the worked time, and up to kLongestPause ns saved, does not count as
// unused time.
constexpr int64_t kPauses = 8;
constexpr int64_t kLongestPause = 2'000;
// Longest idle time of a round in which a pool waits. Beyond it, the thread was preempted.
constexpr int64_t kMostIdle = 10'000;
// Worked time from which the needs of pools are measured.
constexpr int64_t kLearned = 64'000;
// Time for which queue pairs of one pool keep sending before another pool's: their packets are
// transmitted together.
constexpr int64_t kStay = 16'000;
// A pool that asks for nothing for this long is not active.
constexpr Duration kAtWork = Milliseconds(1);
// Longest measurement that is believed. Of a longer one, only the time that the thread has run is
// charged: the rest is an interruption.
constexpr int64_t kInterrupted = 100'000;
// Longest time between two comparisons of the clocks. What the thread has not run since the last
// comparison may be of a measurement, or of a sleep before it.
constexpr int64_t kCompareEvery = 200'000;
// A turn longer than kLongTurn and kUnusual times the recent cost was interrupted as well. A pool
// charged for an interruption would wait as long again for nothing.
constexpr int64_t kUnusual = 4;
constexpr int64_t kLongTurn = 8'000;
constexpr Duration kReportEvery = Seconds(1);
// A turn takes at most this fraction of the pool's rate per second.
constexpr uint64_t kTurnsPerSecond = 500;

template <typename T>
void EraseOne(std::vector<T*>& from, const T* what) {
  const auto at = std::find(from.begin(), from.end(), what);
  if (at != from.end()) from.erase(at);
}

uint32_t WeightOf(const tenant::Share* share) {
  return share == nullptr ? 1 : std::max(share->weight(), 1u);
}

// Returns the account's part of its pool's weight, in units that leave room for the division.
uint32_t WeightOf(const Account& account) {
  constexpr uint32_t kUnits = 1024;
  constexpr uint32_t kMostWeight = UINT32_MAX / kUnits;
  const uint32_t pool = std::min(WeightOf(account.share), kMostWeight) * kUnits;
  return std::max(pool / std::max(account.of_pool->at_work, 1u), 1u);
}

}  // namespace

Scheduler::Scheduler(Clock clock, uint64_t link_bytes_per_second, Clock processor)
    : clock_(clock), processor_(processor), link_bytes_per_second_(link_bytes_per_second) {}

Account* Scheduler::Open(tenant::Share* share, tenant::SlotShare* slot) {
  for (const auto& account : accounts_) {
    if (account->share != share || account->slot != slot) continue;
    ++account->sessions;
    return account.get();
  }
  const tenant::Share* const of = share == nullptr ? nullptr : share->parent();
  auto tenant = std::find_if(tenants_.begin(), tenants_.end(),
                             [&](const auto& known) { return known->share == of; });
  if (tenant == tenants_.end()) {
    tenants_.push_back(std::make_unique<TenantAccount>());
    tenant = std::prev(tenants_.end());
    (*tenant)->share = of;
  }
  auto pool = std::find_if(pools_.begin(), pools_.end(),
                           [&](const auto& known) { return known->share == share; });
  if (pool == pools_.end()) {
    pools_.push_back(std::make_unique<PoolAccounts>());
    pool = std::prev(pools_.end());
    (*pool)->share = share;
  }
  ++(*pool)->accounts;
  ++(*tenant)->pools;
  accounts_.push_back(std::make_unique<Account>());
  Account& account = *accounts_.back();
  account.share = share;
  account.slot = slot;
  account.bytes = slot != nullptr ? &slot->bytes : share != nullptr ? &share->bytes : nullptr;
  account.of_pool = pool->get();
  if (share != nullptr) account.pool = share->tag();
  account.tenant = tenant->get();
  account.sessions = 1;
  account.ready.Reserve(reserved_);
  (*tenant)->active.reserve((*tenant)->pools);
  active_tenants_.reserve(tenants_.size());
  tenant_times_.reserve(tenants_.size());
  active_.reserve(accounts_.size());
  waiting_.reserve(accounts_.size());
  noted_.reserve(accounts_.size());
  return &account;
}

void Scheduler::Reserve(size_t queue_pairs) {
  reserved_ = std::max(reserved_, queue_pairs);
  for (const auto& account : accounts_) account->ready.Reserve(reserved_);
}

void Scheduler::Close(Account* account) {
  if (--account->sessions != 0) return;
  EraseOne(active_, account);
  EraseOne(waiting_, account);
  EraseOne(noted_, account);
  active_changed_ = true;
  TenantAccount* const tenant = account->tenant;
  PoolAccounts* const pool = account->of_pool;
  if (account->active) {
    --tenant->at_work;
    --pool->at_work;
  }
  if (--pool->accounts == 0)
    std::erase_if(pools_, [&](const auto& known) { return known.get() == pool; });
  if (--tenant->pools == 0)
    std::erase_if(tenants_, [&](const auto& known) { return known.get() == tenant; });
  std::erase_if(accounts_, [&](const auto& known) { return known.get() == account; });
}

void Scheduler::Activate(Account& account) {
  account.active = true;
  ++account.of_pool->at_work;
  // A pool that becomes active starts with credit for one turn, so that it waits for no other.
  account.time.credit = kLeastTurn;
  if (account.tenant->at_work++ == 0) account.tenant->time.credit = kLeastTurn;
  active_.push_back(&account);
  active_changed_ = true;
}

void Scheduler::BeginRound(TimePoint now) {
  const int64_t elapsed = (now - std::exchange(now_, now)).ns;
  for (Account* account : waiting_) {
    account->turns_left = static_cast<uint32_t>(account->ready.size());
    if (account->closed_until > now) continue;
    Use(*account);
    account->time.Wait();
    account->tenant->time.Wait();
  }
  std::erase_if(active_, [&](Account* account) {
    account->active = now - account->used_at < kAtWork;
    if (account->active) return false;
    --account->tenant->at_work;
    --account->of_pool->at_work;
    active_changed_ = true;
    return true;
  });
  metering_ = clock_ != nullptr && active_.size() > 1;
  if (metering_) {
    const bool learn = since_learned_ >= kLearned;
    if (learn || active_changed_) DivideTime(learn);
    HandOutTime(IdleOf(elapsed));
    if (processor_ != nullptr) {
      const int64_t at = clock_();
      if (at - compared_at_ >= kCompareEvery) CompareClocks(at);
    }
  }
  round_ = unpaid_ = 0;
}

int64_t Scheduler::IdleOf(int64_t elapsed) {
  const int64_t idle = std::clamp<int64_t>(elapsed - round_ - unpaid_, 0, kMostIdle);
  pause_ = std::min(pause_ + round_ / kPauses, kLongestPause);
  const int64_t paused = std::min(idle, pause_);
  pause_ -= paused;
  return idle - paused;
}

void Scheduler::ListActive() {
  active_changed_ = false;
  active_tenants_.clear();
  tenant_times_.clear();
  for (const auto& tenant : tenants_) tenant->active.clear();
  for (Account* account : active_) {
    TenantAccount& tenant = *account->tenant;
    if (tenant.active.empty()) {
      active_tenants_.push_back(&tenant);
      tenant_times_.push_back(&tenant.time);
    }
    tenant.active.push_back(&account->time);
  }
}

void Scheduler::DivideTime(bool learn) {
  if (active_changed_) ListActive();
  if (learn) since_learned_ = 0;
  for (Account* account : active_) account->time.weight = WeightOf(*account);
  for (TenantAccount* tenant : active_tenants_) {
    tenant->time.weight = WeightOf(tenant->share);
    Divide(tenant->active, learn);
  }
  Divide(tenant_times_, learn);
}

void Scheduler::HandOutTime(int64_t idle) {
  HandOut(tenant_times_, round_, idle);
  for (TenantAccount* tenant : active_tenants_) {
    if (tenant->active.size() == 1) {
      tenant->active.front()->credit = tenant->time.credit;
    } else {
      HandOut(tenant->active, tenant->time.given, tenant->time.idle);
    }
    tenant->time.waits = false;
    for (TimeShare* time : tenant->active) time->waits = false;
  }
}

void Scheduler::Push(Account& account, SlotHandle qp) {
  Use(account);
  PushAgain(account, qp);
  // The queue pair became ready in this round, so it has its turn in it.
  ++account.turns_left;
}

void Scheduler::PushAgain(Account& account, SlotHandle qp) {
  if (account.ready.empty()) waiting_.push_back(&account);
  account.ready.push_back(qp);
}

Scheduler::Tier Scheduler::TierOf(Account& account, TimePoint now, Turn& turn) {
  bool committed = false;
  if (account.share != nullptr) {
    turn.bytes_rate = account.bytes->Ask(now, 0);
    turn.packets_rate = account.share->packets.Ask(now, 0);
    if (turn.bytes_rate.closed != nullptr || turn.packets_rate.closed != nullptr) {
      HoldBack(account, now, turn);
      return Tier::kNone;
    }
    committed = turn.bytes_rate.promised || turn.packets_rate.promised;
  }
  account.closed_until = {};
  if (!metering_) return account.turns_left == 0 ? Tier::kNone : Tier::kOwnPart;
  if (committed) return Tier::kCommitted;
  if (account.tenant->time.credit <= 0) return Tier::kNone;
  return account.time.credit > 0 ? Tier::kOwnPart : Tier::kTenantsPart;
}

void Scheduler::HoldBack(Account& account, TimePoint now, const Turn& turn) {
  const bool bytes = turn.bytes_rate.closed != nullptr;
  if (account.closed_until <= now) {
    (bytes ? account.share->held_back_by_bytes : account.share->held_back_by_packets)
        .fetch_add(1, std::memory_order_relaxed);
    if (now >= account.reported_at + kReportEvery) {
      account.reported_at = now;
      held_back_.push_back({account.share, bytes ? tenant::Rate::kBytes : tenant::Rate::kPackets,
                            bytes ? turn.bytes_rate.closed : turn.packets_rate.closed});
    }
  }
  account.closed_until = std::max(turn.bytes_rate.opens, turn.packets_rate.opens);
}

bool Scheduler::GoesBefore(const Account& account, const Account& other) const {
  const bool stays = metering_ && stayed_ < kStay;
  if (stays && (&account == staying_ || &other == staying_)) return &account == staying_;
  return account.served < other.served;
}

bool Scheduler::NextTurn(TimePoint now, Turn& turn) {
  Tier best = Tier::kNone;
  size_t chosen = 0;
  for (size_t at = 0; at < waiting_.size(); ++at) {
    Turn candidate;
    const Tier tier = TierOf(*waiting_[at], now, candidate);
    if (tier == Tier::kNone || tier > best) continue;
    if (tier == best && !GoesBefore(*waiting_[at], *waiting_[chosen])) continue;
    best = tier;
    chosen = at;
    turn = candidate;
  }
  if (best == Tier::kNone) return false;
  Account& account = *waiting_[chosen];
  turn.account = &account;
  turn.qp = account.ready.front();
  account.ready.pop_front();
  if (account.turns_left != 0) --account.turns_left;
  if (account.ready.empty()) {
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  account.served = ++turns_;
  // Consecutive turns of queue pairs of the same pool.
  if (staying_ != &account) {
    staying_ = &account;
    stayed_ = 0;
  }
  SetLimits(best, turn);
  return true;
}

void Scheduler::SetLimits(Tier tier, Turn& turn) const {
  const Account& account = *turn.account;
  turn.packets = kPacketsPerTurn;
  turn.bytes = kBytesPerTurn;
  if (metering_ && tier != Tier::kCommitted) {
    const int64_t left = std::min(account.time.credit, account.tenant->time.credit);
    const int64_t time = std::max(left, kLeastTurn);
    turn.packets = static_cast<uint32_t>(
        std::clamp<int64_t>(time / std::max<int64_t>(account.packet_cost, 1), 1, kPacketsPerTurn));
  }
  const auto at_most = [](uint64_t rate) {
    return static_cast<int64_t>(std::clamp<uint64_t>(rate / kTurnsPerSecond, 1, kBytesPerTurn));
  };
  if (account.slot != nullptr)
    turn.bytes = std::min(turn.bytes, at_most(account.slot->bytes.limit()));
  for (const tenant::Share* share = account.share; share != nullptr; share = share->parent()) {
    turn.bytes = std::min(turn.bytes, at_most(share->bytes.limit()));
    turn.packets =
        static_cast<uint32_t>(std::min<int64_t>(turn.packets, at_most(share->packets.limit())));
  }
}

void Scheduler::EndTurn(TimePoint now, const Turn& turn) {
  Account& account = *turn.account;
  const uint64_t bytes = std::exchange(account.unpaid_bytes, 0);
  const uint64_t packets = std::exchange(account.unpaid_packets, 0);
  if (metering_) {
    int64_t cost = Elapsed();
    if (packets != 0) {
      const int64_t usual = account.packet_cost * static_cast<int64_t>(packets);
      const int64_t most = std::max(kUnusual * usual, kLongTurn);
      unpaid_ += std::max<int64_t>(cost - most, 0);
      cost = std::min(cost, most);
    }
    if (link_bytes_per_second_ != 0) {
      const double on_link =
          static_cast<double>(bytes) * 1e9 / static_cast<double>(link_bytes_per_second_);
      cost = std::max(cost, static_cast<int64_t>(on_link));
    }
    Charge(account, cost);
    stayed_ += cost;
    if (packets != 0) {
      const int64_t of_one = cost / static_cast<int64_t>(packets);
      account.packet_cost += (of_one - account.packet_cost) / 8;
    }
  }
  if (account.share == nullptr || (bytes == 0 && packets == 0)) return;
  account.bytes->Charge(turn.bytes_rate, now, bytes);
  account.share->packets.Charge(turn.packets_rate, now, packets);
  account.share->sent_bytes.fetch_add(bytes, std::memory_order_relaxed);
  account.share->sent_packets.fetch_add(packets, std::memory_order_relaxed);
}

TimePoint Scheduler::NextOpening() const {
  TimePoint opening = kNever;
  for (const Account* account : waiting_) opening = std::min(opening, account->closed_until);
  return opening;
}

bool Scheduler::HasReady(TimePoint now) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const Account* account) { return account->closed_until <= now; });
}

int64_t Scheduler::Elapsed() {
  const int64_t at = clock_();
  const int64_t elapsed = std::max<int64_t>(at - std::exchange(mark_, at), 0);
  if (elapsed <= kInterrupted) return elapsed;
  const int64_t worked = Worked(elapsed, at);
  unpaid_ += elapsed - worked;
  return worked;
}

int64_t Scheduler::Worked(int64_t elapsed, int64_t at) {
  if (processor_ == nullptr) return kInterrupted;
  const int64_t compared_at = compared_at_;
  const int64_t had_run = had_run_;
  CompareClocks(at);
  const int64_t away = std::max<int64_t>((at - compared_at) - (had_run_ - had_run), 0);
  return std::clamp(elapsed - away, kInterrupted, elapsed);
}

void Scheduler::CompareClocks(int64_t at) {
  compared_at_ = at;
  had_run_ = processor_();
}

void Scheduler::Charge(Account& account, int64_t ns) {
  for (TimeShare* time : {&account.time, &account.tenant->time}) {
    time->credit -= ns;
    time->used += ns;
  }
  round_ += ns;
  since_learned_ += ns;
}

void Scheduler::AddUnits(Account& account, uint64_t units) {
  if (account.units == 0) noted_.push_back(&account);
  account.units += units;
}

void Scheduler::DivideAmongNoted() {
  uint64_t all = 0;
  for (const Account* account : noted_) all += account->units;
  const auto elapsed = static_cast<uint64_t>(metering_ ? Elapsed() : 0);
  for (Account* account : noted_) {
    const uint64_t units = std::exchange(account->units, 0);
    if (metering_) Charge(*account, static_cast<int64_t>(elapsed * units / all));
  }
  noted_.clear();
}

}  // namespace rocegw::worker
