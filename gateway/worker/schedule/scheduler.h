// SPDX-License-Identifier: Apache-2.0
// Scheduler that chooses the queue pair of a worker that sends next. The worker's time is divided
// by weight over tenants, and within a tenant by weight over pools. Within a pool, queue pairs are
// served by deficit round robin, one round per iteration of the worker. A pool pays for all work
// done for it, not only for sending: control messages, doorbells, received packets and memory
// operations are measured per pool and charged. A pool that causes other work therefore sends less.
// Sent bytes count for the time that the link needs for them if that is longer.
//
// A round hands out as much time as the last one took (time_share.h says how). A pool that exceeds
// its part pays in later rounds. Rates that are committed to a pool (bytes or packets per second)
// are served first, and no pool exceeds its peak (tenant/share.h). A slot with limits of its own is
// served like a pool, with its part of the pool's weight (tenant/slot_share.h). With only one
// active pool, nothing is measured.
//
// Belongs to one worker. Time comes only from the given clock; all times are in nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/tenant/share.h"
#include "gateway/tenant/slot_share.h"
#include "gateway/worker/control/control_message.h"
#include "gateway/worker/schedule/time_share.h"

namespace rocegw::worker {

struct TenantAccount {
  const tenant::Share* share = nullptr;  // nullptr: sessions without a pool (tests)
  uint32_t pools = 0;
  uint32_t at_work = 0;  // number of active pools
  TimeShare time;
  std::vector<TimeShare*> active;  // shares of its active pools
};

// Accounts of one pool on one worker: one for each of its slots that have limits of their own, and
// one for all others. They divide the pool's weight.
struct PoolAccounts {
  tenant::Share* share = nullptr;
  uint32_t accounts = 0;
  uint32_t at_work = 0;     // number of active accounts
  size_t packets_held = 0;  // transmit buffers whose packets wait for memory (send/held_packets.h)
  // Heap of the records that peers' messages make (objects/record_heap.h): what there is, what the
  // pool's quota was charged, and if it has refused more.
  size_t records = 0;
  size_t records_charged = 0;
  bool records_refused = false;
};

// State of one pool, or of a slot of it with limits of its own, on one worker.
struct Account {
  tenant::Share* share = nullptr;
  tenant::SlotShare* slot = nullptr;  // nullptr: sessions without limits of their own
  tenant::RateNode* bytes = nullptr;  // lowest rate of its bytes; nullptr: no pool
  PoolAccounts* of_pool = nullptr;
  PoolTag pool;
  TenantAccount* tenant = nullptr;
  uint32_t sessions = 0;
  GrowingRing<SlotHandle> ready;  // queue pairs with something to send
  uint64_t served = 0;            // number of its last turn
  uint32_t turns_left = 0;        // queue pairs left of those that were ready when the round began
  TimeShare time;
  int64_t packet_cost = 500;         // recent cost of sending one packet, ns
  uint64_t units = 0;                // units of the work being measured
  TimePoint used_at;                 // time of the last use
  bool active = false;               // competes for the worker's time
  TimePoint closed_until;            // its rate is used up until then
  TimePoint reported_at{INT64_MIN};  // time of the last report of that
  uint32_t engine_copies = 0;        // copies with the worker's copy engine
  // Sent since the rates were last charged.
  uint64_t unpaid_bytes = 0;
  uint64_t unpaid_packets = 0;
};

class Scheduler {
 public:
  // Bytes of one quantum. Bytes sent beyond it are deducted from the queue pair's next quantum.
  static constexpr int64_t kBytesPerTurn = 128 * 1024;

  // Monotonic nanoseconds; nullptr: nothing is measured, pools are served round-robin.
  using Clock = int64_t (*)();

  // link_bytes_per_second: 0 if unknown. `processor`: time for which the thread has run; nullptr:
  // unknown, so that a long measurement counts as an interruption.
  Scheduler(Clock clock, uint64_t link_bytes_per_second, Clock processor = nullptr);

  // Count the sessions of a pool, or of a slot that has limits of its own.
  Account* Open(tenant::Share* share, tenant::SlotShare* slot = nullptr);
  void Close(Account* account);

  // Allocates space for so many ready queue pairs of any pool.
  void Reserve(size_t queue_pairs);

  void BeginRound(TimePoint now);
  // Returns the nanoseconds charged in this round.
  int64_t charged() const { return round_; }
  // Returns true if several pools are active.
  bool contended() const { return metering_; }

  // Adds a queue pair that has something to send. Call it at most once until the queue pair's turn.
  void Push(Account& account, SlotHandle qp);
  // Adds a queue pair that has more to send after its turn, for the next round or the rest of its
  // pool's part.
  void PushAgain(Account& account, SlotHandle qp);
  struct Turn {
    Account* account = nullptr;
    SlotHandle qp;
    uint32_t packets = 0;  // at most
    int64_t bytes = 0;     // at most
    tenant::RateNode::Answer bytes_rate;
    tenant::RateNode::Answer packets_rate;
  };
  // Chooses the next turn. Returns false if nothing may be sent now. Call Mark before the first
  // turn: turns are measured from end to end.
  bool NextTurn(TimePoint now, Turn& turn);
  void EndTurn(TimePoint now, const Turn& turn);
  // Returns the pools that a rate has started to hold back since the last call.
  std::vector<RateReached> TakeHeldBack() { return std::exchange(held_back_, {}); }
  // Returns the time of the next turn that waits for a rate; kNever: none.
  TimePoint NextOpening() const;
  // Returns true if something may be sent now.
  bool HasReady(TimePoint now) const;
  // Counts a packet that leaves. bytes: with headers and ICRC.
  void OnSent(Account& account, uint64_t bytes) {
    ++account.unpaid_packets;
    account.unpaid_bytes += bytes;
    Use(account);
  }

  // Returns true if the pool has used up its time while others want theirs.
  bool InDebt(const Account& account) const {
    return metering_ && account.active &&
           (account.time.credit <= 0 || account.tenant->time.credit <= 0);
  }
  // Returns true if the pool is so far in debt that its received packets must wait. A smaller debt
  // is usual for pools that use all of their time, and a delay that others hardly notice.
  bool InDeepDebt(const Account& account) const {
    return metering_ && account.active &&
           std::min(account.time.credit, account.tenant->time.credit) < -kDeepDebt;
  }
  // Records that a pool in debt has work that must wait. It then competes for time; otherwise it
  // would get none to leave its debt.
  void Wait(Account& account) {
    account.used_at = now_;
    account.time.Wait();
    account.tenant->time.Wait();
  }

  // Starts a measurement.
  void Mark() {
    if (metering_) mark_ = clock_();
  }
  // Charges the time since the mark to the pool and moves the mark.
  void ChargeTo(Account& account) {
    Use(account);
    if (metering_) Charge(account, Elapsed());
  }
  // Counts the time since the mark as overhead of no pool and moves the mark.
  void ChargeNobody() {
    if (metering_) unpaid_ += Elapsed();
  }
  // Attributes a part of the work being measured to the pool.
  void Note(Account& account, uint64_t packets, uint64_t bytes) {
    Use(account);
    if (metering_) AddUnits(account, packets * kPacketUnits + bytes);
  }
  // Divides the time since the mark among the pools noted.
  void ChargeNoted() {
    if (!noted_.empty()) DivideAmongNoted();
  }

 private:
  static constexpr int64_t kDeepDebt = 16'000;  // ns
  // A packet costs as much as this many bytes.
  static constexpr uint64_t kPacketUnits = 1024;
  // Order of service. kNone: not now.
  enum class Tier : uint8_t { kCommitted, kOwnPart, kTenantsPart, kNone };

  void Use(Account& account) {
    account.used_at = now_;
    if (!account.active) Activate(account);
  }
  void Activate(Account& account);
  int64_t Elapsed();
  // Returns how much of a long measurement, which ends at `at`, the thread has run.
  int64_t Worked(int64_t elapsed, int64_t at);
  void CompareClocks(int64_t at);
  void Charge(Account& account, int64_t ns);
  void AddUnits(Account& account, uint64_t units);
  void DivideAmongNoted();
  void ListActive();
  int64_t IdleOf(int64_t elapsed);
  void DivideTime(bool learn);
  void HandOutTime(int64_t idle);
  Tier TierOf(Account& account, TimePoint now, Turn& turn);
  // Orders accounts of one tier: the one that stays, then the one that was not served for longest.
  bool GoesBefore(const Account& account, const Account& other) const;
  void HoldBack(Account& account, TimePoint now, const Turn& turn);
  void SetLimits(Tier tier, Turn& turn) const;

  const Clock clock_;
  const Clock processor_;
  const uint64_t link_bytes_per_second_;
  std::vector<std::unique_ptr<TenantAccount>> tenants_;
  std::vector<std::unique_ptr<PoolAccounts>> pools_;
  std::vector<std::unique_ptr<Account>> accounts_;
  std::vector<Account*> active_;
  std::vector<Account*> waiting_;  // pools with ready queue pairs
  size_t reserved_ = 0;
  uint64_t turns_ = 0;  // turns so far
  // Pool of the last turn, and the total time of its consecutive turns.
  const Account* staying_ = nullptr;
  int64_t stayed_ = 0;
  std::vector<Account*> noted_;
  std::vector<RateReached> held_back_;
  TimePoint now_;
  bool metering_ = false;
  std::vector<TenantAccount*> active_tenants_;
  std::vector<TimeShare*> tenant_times_;  // time shares of active_tenants_
  bool active_changed_ = false;
  int64_t pause_ = 0;          // idle time that may still pass
  int64_t unpaid_ = 0;         // interruptions of this round, and overhead of no pool
  int64_t round_ = 0;          // charged in this round
  int64_t since_learned_ = 0;  // charged since needs were measured
  int64_t mark_ = 0;
  // Both clocks at the last comparison.
  int64_t compared_at_ = 0;
  int64_t had_run_ = 0;
};

}  // namespace rocegw::worker
