// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/receive/packet_intake.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "gateway/worker/objects/qp_prefetch.h"

namespace rocegw::worker {

using metrics::DropReason;

namespace {

constexpr size_t kBurst = 64;
// Limits with several active pools, so that no pool waits long for another's packets.
constexpr size_t kContendedBurst = 32;
constexpr int kContendedBursts = 8;
constexpr Duration kContendedTime = Microseconds(10);
constexpr uint32_t kWaitingAtOnce = 16;

}  // namespace

PacketIntake::PacketIntake(const Uses& uses)
    : uses_(uses), received_(kBurst), unfiltered_(uses.ports.size()) {}

// Gives the ports the filter when it changes, and once at first: a port may have been another
// process's.
void PacketIntake::FollowFlood(TimePoint now) {
  if (uses_.flood.Look(now) || !filter_applied_) {
    filter_applied_ = true;
    for (size_t device = 0; device < uses_.ports.size(); ++device)
      unfiltered_[device] = !uses_.ports[device]->Filter(uses_.flood.filter());
  }
  if (uses_.flood.PeersWanted(now)) NamePeers(now);
}

void PacketIntake::NamePeers(TimePoint now) {
  for (const QpSlot& slot : uses_.qps.slots()) {
    if (slot.session == nullptr) continue;
    const transport::QpContext& qp = slot.qp->context();
    if (qp.config.type != verbs::QpType::kUd && qp.receives())
      uses_.flood.OnPeer(qp.attributes.path.destination, now);
  }
  for (const wire::Gid& peer : uses_.discovery.known_peers()) uses_.flood.OnPeer(peer, now);
  for (const wire::Gid& member : uses_.channels.members()) uses_.flood.OnPeer(member, now);
}

// Drops what the flood filter does not let pass. Returns how many are left, at the front.
size_t PacketIntake::KeepPassing(std::span<wire::RxDatagram> burst) {
  size_t kept = 0;
  for (const wire::RxDatagram& datagram : burst) {
    if (uses_.flood.Passes(datagram.meta.source, datagram.bytes)) {
      burst[kept++] = datagram;
      continue;
    }
    uses_.counters.rx_packets.Add();
    uses_.counters.rx_bytes.Add(datagram.bytes.size());
    uses_.counters.Drop(DropReason::k_flood);
  }
  return kept;
}

bool PacketIntake::ReceiveAll(TimePoint now) {
  if (uses_.flood.active() || !filter_applied_) FollowFlood(now);
  bool busy = !waiting_.empty() && TakeWaiting(now, !uses_.scheduler.contended());
  for (uint32_t device = 0; device < uses_.ports.size(); ++device) {
    if (!uses_.scheduler.contended()) {
      busy |= ReceiveBurst(device, received_, now) != 0;
      continue;
    }
    const std::span burst = std::span(received_).first(kContendedBurst);
    for (int i = 0; i < kContendedBursts; ++i) {
      const size_t count = ReceiveBurst(device, burst, now);
      busy |= count != 0;
      if (count < burst.size() || uses_.scheduler.charged() > kContendedTime.ns) break;
    }
  }
  return busy;
}

size_t PacketIntake::ReceiveBurst(uint32_t device, std::span<wire::RxDatagram> burst,
                                  TimePoint now) {
  uses_.scheduler.Mark();
  const size_t received = uses_.ports[device]->Receive(burst);
  const size_t count = unfiltered_[device] ? KeepPassing(burst.first(received)) : received;
  uses_.memory.BeginBurst(count);
  if (count > 1 && uses_.qps.outgrows_caches()) {
    QpBurst ahead(uses_.qps);
    for (const wire::RxDatagram& datagram : burst.first(count)) ahead.Add(datagram.bytes);
    ahead.PrefetchReceivers();
  }
  if (uses_.scheduler.contended()) {
    TakeByPool(device, burst.first(count), now);
  } else {
    for (const wire::RxDatagram& datagram : burst.first(count)) Take(device, datagram, now);
  }
  uses_.scheduler.ChargeNoted();
  // The port may use the payloads' memory again at the next Receive.
  if (count != 0) uses_.memory.Flush();
  uses_.demultiplexer.EndBurst();
  return received;
}

// Returns the pool of the queue pair that a datagram names; nullptr: none. Channels have no pool:
// their frames may belong to any.
Account* PacketIntake::PoolOf(const wire::RxDatagram& datagram) {
  const QpSlot* const slot = uses_.qps.Find(port::DestinationQpn(datagram.bytes));
  if (slot == nullptr || slot->session == nullptr) return nullptr;
  __builtin_prefetch(slot->qp.get());
  return slot->session->account;
}

// Returns true if the pool has used up its time, or if earlier datagrams wait in its queue.
bool PacketIntake::MustWait(const Account& pool) const {
  return (!waiting_.empty() && waiting_.Waits(pool)) || uses_.scheduler.InDeepDebt(pool);
}

// Puts a datagram into its pool's queue. Returns false if the datagram is to be processed now.
bool PacketIntake::PutBack(const Account& pool, uint32_t device, const wire::RxDatagram& datagram) {
  const PoolQueues::Put put = waiting_.Push(pool, device, datagram);
  if (put == PoolQueues::Put::kNoQueue) return false;
  uses_.counters.rx_packets.Add();
  uses_.counters.rx_bytes.Add(datagram.bytes.size());
  if (put == PoolQueues::Put::kFull) uses_.counters.Drop(DropReason::k_handoff_full);
  return true;
}

bool PacketIntake::TakeWaiting(TimePoint now, bool all) {
  for (size_t i = 0; i < waiting_.size(); ++i) {
    PoolQueues::Queue& queue = waiting_.at(i);
    while (!queue.datagrams.empty()) {
      uint32_t device = 0;
      Account* const pool = PoolOf(queue.datagrams.At(0, device));
      // If the pool was closed, its datagrams find no queue pair or one of another pool.
      const bool alive = pool == queue.pool;
      if (!all && alive && uses_.scheduler.InDebt(*pool)) {
        uses_.scheduler.Wait(*pool);
        break;
      }
      TakeSome(queue.datagrams, kWaitingAtOnce, /*filtered=*/false, now);
    }
  }
  waiting_.FreeEmpty();
  return true;
}

// Processes at most so many datagrams of a queue and charges their pools. `filtered`: drops what
// the flood filter does not let pass. Returns how many.
uint32_t PacketIntake::TakeSome(HandoffRing& datagrams, uint32_t most, bool filtered,
                                TimePoint now) {
  const uint32_t count = std::min(datagrams.size(), most);
  uses_.scheduler.Mark();
  uses_.memory.BeginBurst(count);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t device = 0;
    uses_.memory.NextDatagram();
    const wire::RxDatagram datagram = datagrams.At(i, device);
    if (filtered && !uses_.flood.Passes(datagram.meta.source, datagram.bytes)) {
      uses_.counters.Drop(DropReason::k_flood);
      continue;
    }
    uses_.demultiplexer.OnDatagram(device, datagram, now);
  }
  uses_.scheduler.ChargeNoted();
  datagrams.Pop(count, uses_.memory.Flush());
  return count;
}

// Processes the burst pool by pool and charges each pool its own time. Cache warmth of the queue
// pair, not packet length, dominates the cost.
void PacketIntake::TakeByPool(uint32_t device, std::span<const wire::RxDatagram> burst,
                              TimePoint now) {
  std::array<Account*, kContendedBurst> pools;
  uint32_t left = 0;
  uint32_t late = 0;
  for (size_t i = 0; i < burst.size(); ++i) {
    Account* const pool = PoolOf(burst[i]);
    pools[i] = pool;
    if (pool != nullptr) uses_.scheduler.Note(*pool, 1, burst[i].bytes.size());
    (pool != nullptr && MustWait(*pool) ? late : left) |= 1u << i;
  }
  // Charges the time to receive the burst.
  uses_.scheduler.ChargeNoted();
  for (; late != 0; late &= late - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(late));
    if (!PutBack(*pools[i], device, burst[i])) left |= 1u << i;
    uses_.scheduler.ChargeTo(*pools[i]);
  }
  while (left != 0) {
    // Only compared, never dereferenced: processing a packet may close its session.
    const Account* const pool = pools[static_cast<size_t>(std::countr_zero(left))];
    for (uint32_t others = left; others != 0; others &= others - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(others));
      if (pools[i] != pool) continue;
      left &= ~(1u << i);
      Take(device, burst[i], now);
    }
    uses_.scheduler.ChargeNoted();
  }
}

void PacketIntake::Take(uint32_t device, const wire::RxDatagram& datagram, TimePoint now) {
  uses_.memory.NextDatagram();
  uses_.counters.rx_packets.Add();
  uses_.counters.rx_bytes.Add(datagram.bytes.size());
  const Qpn qpn = port::DestinationQpn(datagram.bytes);
  if (qpn == kMulticastQpn) return TakeMulticast(device, datagram, now);
  const WorkerIndex owner = uses_.steering.WorkerOf(qpn);
  if (owner == uses_.worker || owner >= uses_.inboxes.size())
    return uses_.demultiplexer.OnDatagram(device, datagram, now);
  HandOver(owner, device, datagram);
}

// Handles a datagram that the port delivered once: hands it to every worker with receivers.
void PacketIntake::TakeMulticast(uint32_t device, const wire::RxDatagram& datagram, TimePoint now) {
  const std::vector<Qpn>* const members =
      uses_.multicast.Members(device, datagram.meta.destination);
  if (members == nullptr) return uses_.counters.Drop(DropReason::k_unknown_qpn);
  std::vector<bool> receives(uses_.inboxes.size());
  for (const Qpn member : *members) {
    const WorkerIndex owner = uses_.steering.WorkerOf(member);
    if (owner < receives.size()) receives[owner] = true;
  }
  for (size_t owner = 0; owner < receives.size(); ++owner) {
    if (receives[owner] && owner != uses_.worker)
      HandOver(static_cast<WorkerIndex>(owner), device, datagram);
  }
  if (receives[uses_.worker]) uses_.demultiplexer.OnDatagram(device, datagram, now);
}

void PacketIntake::HandOver(WorkerIndex owner, uint32_t device, const wire::RxDatagram& datagram) {
  WorkerInbox& other = *uses_.inboxes[owner];
  if (!other.from[uses_.worker].Push(device, datagram))
    return uses_.counters.Drop(DropReason::k_handoff_full);
  uses_.counters.handoff_tx_packets.Add();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (other.sleeping.load(std::memory_order_relaxed)) {
    const uint64_t one = 1;
    // A write to an eventfd with a full counter also wakes the reader.
    [[maybe_unused]] const ssize_t n = write(other.wake_fd, &one, sizeof one);
  }
}

bool PacketIntake::ReceiveHandedOver(TimePoint now) {
  bool busy = false;
  for (HandoffRing& ring : uses_.inboxes[uses_.worker]->from) {
    if (ring.empty()) continue;
    // The port of the worker that received them knows nothing of this one's flood.
    const uint32_t taken =
        TakeSome(ring, HandoffRing::kSlots, /*filtered=*/uses_.flood.watching(), now);
    uses_.counters.handoff_rx_packets.Add(taken);
    uses_.demultiplexer.EndBurst();
    busy = true;
  }
  return busy;
}

}  // namespace rocegw::worker
