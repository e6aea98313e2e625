// SPDX-License-Identifier: Apache-2.0
// Which queue pair of a worker sends next, when there is more to do than time. The worker's time is
// divided over tenants, inside of them over pools, by weight, and inside of a pool over queue
// pairs: deficit round robin, one round an iteration of the worker. A pool pays for everything that
// is done for it, not only for sending: control messages, doorbells, received packets and memory
// operations are measured and charged, each pool's apart, so a pool that makes work elsewhere sends
// less. Sent bytes count for the time that the link needs for them where that is longer.
//
// A round hands out as much time as the last one took (time_share.h says to whom); who used more
// than its part pays in the rounds that follow. What is committed to a pool in bytes or packets per
// second goes first, and no pool exceeds its peak (tenant/share.h). With a single pool at work
// nothing is measured.
//
// Owner: one worker, its thread. No time is read but through the clock given; all of it is in
// nanoseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gateway/base/growing_ring.h"
#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/tenant/share.h"
#include "gateway/worker/control_message.h"
#include "gateway/worker/time_share.h"

namespace rocegw::worker {

struct TenantAccount {
  const tenant::Share* share = nullptr;  // nullptr: of sessions without a pool (tests)
  uint32_t pools = 0;
  uint32_t at_work = 0;  // of them
  TimeShare time;
  std::vector<TimeShare*> active;  // of its pools at work
};

// One pool on one worker.
struct Account {
  tenant::Share* share = nullptr;
  TenantAccount* tenant = nullptr;
  uint32_t sessions = 0;
  GrowingRing<SlotHandle> ready;  // queue pairs with something to send
  uint32_t turns_left = 0;        // of those that were ready when the round began
  TimeShare time;
  int64_t packet_cost = 500;     // of sending one, lately
  uint64_t units = 0;            // part in what is being measured
  TimePoint used_at;             // last
  bool active = false;           // competes for the worker's time
  TimePoint closed_until;        // its rate is used up
  TimePoint told_at{INT64_MIN};  // that it was
  // Sent since the rates were charged.
  uint64_t unpaid_bytes = 0;
  uint64_t unpaid_packets = 0;
};

class Scheduler {
 public:
  // The most bytes of a turn; what a queue pair sends beyond them comes off its next turn.
  static constexpr int64_t kBytesPerTurn = 128 * 1024;

  // Monotonic nanoseconds; nullptr: nothing is measured, turns go round.
  using Clock = int64_t (*)();

  // link_bytes_per_second: 0 when not known.
  Scheduler(Clock clock, uint64_t link_bytes_per_second);

  // A session of that pool is there, and gone.
  Account* Open(tenant::Share* share);
  void Close(Account* account);

  // So many queue pairs of any pool find room without an allocation.
  void Reserve(size_t queue_pairs);

  void BeginRound(TimePoint now);
  // Nanoseconds that were charged in this round.
  int64_t charged() const { return round_; }
  // Several pools are at work.
  bool contended() const { return metering_; }

  // The queue pair has something to send; at most once until its turn.
  void Push(Account& account, SlotHandle qp);
  // After its turn: it has more, for the next round or for what is left of its pool's part.
  void PushAgain(Account& account, SlotHandle qp);
  struct Turn {
    Account* account = nullptr;
    SlotHandle qp;
    uint32_t packets = 0;  // at most
    int64_t bytes = 0;     // at most
    tenant::RateNode::Answer bytes_rate;
    tenant::RateNode::Answer packets_rate;
  };
  // False: nothing that may be sent now. Mark before the first; turns are measured end to end.
  bool NextTurn(TimePoint now, Turn& turn);
  void EndTurn(TimePoint now, const Turn& turn);
  // Pools that a rate has begun to hold back, since the last call.
  std::vector<RateReached> TakeHeldBack() { return std::exchange(held_back_, {}); }
  // The next turn that waits for a rate; kNever: none does.
  TimePoint NextOpening() const;
  // Something may be sent now.
  bool HasReady(TimePoint now) const;
  // A packet is on its way; headers and check value included.
  void OnSent(Account& account, uint64_t bytes) {
    ++account.unpaid_packets;
    account.unpaid_bytes += bytes;
    Use(account);
  }

  // It has used up its time while others want theirs.
  bool InDebt(const Account& account) const {
    return metering_ && account.active &&
           (account.time.credit <= 0 || account.tenant->time.credit <= 0);
  }
  // Somebody in debt asks for something that has to wait. Whoever waits competes, or it would get
  // no time to come out of debt.
  void Wait(Account& account) {
    account.used_at = now_;
    account.time.Wait();
    account.tenant->time.Wait();
  }

  // What follows is measured from here.
  void Mark() {
    if (metering_) mark_ = clock_();
  }
  // Everything since the mark was for that pool; the mark moves on.
  void ChargeTo(Account& account) {
    Use(account);
    if (metering_) Charge(account, Elapsed());
  }
  // Everything since the mark was for nobody in particular.
  void ChargeNobody() {
    if (metering_) unpaid_ += Elapsed();
  }
  // A part of what is being measured is for that pool.
  void Note(Account& account, uint64_t packets, uint64_t bytes) {
    Use(account);
    if (metering_) AddUnits(account, packets * kPacketUnits + bytes);
  }
  // Everything since the mark was for those noted.
  void ChargeNoted() {
    if (!noted_.empty()) DivideAmongNoted();
  }

 private:
  // A packet costs as much as so many bytes.
  static constexpr uint64_t kPacketUnits = 1024;
  // Who is served first. kNone: not now.
  enum class Tier : uint8_t { kPromised, kOwnPart, kTenantsPart, kNone };

  void Use(Account& account) {
    account.used_at = now_;
    if (!account.active) Activate(account);
  }
  void Activate(Account& account);
  int64_t Elapsed();
  void Charge(Account& account, int64_t ns);
  void AddUnits(Account& account, uint64_t units);
  void DivideAmongNoted();
  void ListActive();
  int64_t IdleOf(int64_t elapsed);
  void DivideTime(bool learn);
  void HandOutTime(int64_t idle);
  Tier TierOf(Account& account, TimePoint now, Turn& turn);
  void HoldBack(Account& account, TimePoint now, const Turn& turn);
  void SetLimits(Tier tier, Turn& turn) const;

  const Clock clock_;
  const uint64_t link_bytes_per_second_;
  std::vector<std::unique_ptr<TenantAccount>> tenants_;
  std::vector<std::unique_ptr<Account>> accounts_;
  std::vector<Account*> active_;
  std::vector<Account*> waiting_;  // those with ready queue pairs
  size_t reserved_ = 0;
  size_t next_ = 0;  // in waiting_: whose turn comes first
  // Who had the last turn, and the time of all its turns since another had one.
  const Account* staying_ = nullptr;
  int64_t stayed_ = 0;
  std::vector<Account*> noted_;
  std::vector<RateReached> held_back_;
  TimePoint now_;
  bool metering_ = false;
  std::vector<TenantAccount*> active_tenants_;
  std::vector<TimeShare*> tenant_times_;  // of those
  bool active_changed_ = false;
  int64_t pause_ = 0;          // may still go by idle
  int64_t unpaid_ = 0;         // of this round: interruptions, and what was for nobody
  int64_t round_ = 0;          // charged in this round
  int64_t since_learned_ = 0;  // charged since needs were learned
  int64_t mark_ = 0;
};

}  // namespace rocegw::worker
