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
// Limits with several active pools, so that no pool waits long for another's packets. Most of a
// flood only joins its pool's queue, and what the port still holds of other pools stands behind it:
// with 10 us instead of 40, the 99th percentile of their latency was higher by half.
constexpr size_t kContendedBurst = 32;
constexpr int kContendedBursts = 32;
constexpr Duration kContendedTime = Microseconds(40);
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
  bool busy = !uses_.waiting.empty() && TakeWaiting(now, !uses_.scheduler.contended());
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

// Puts a datagram into its pool's queue. Returns false if the datagram is to be processed now.
bool PacketIntake::PutBack(const Account& pool, uint32_t device, const wire::RxDatagram& datagram) {
  WaitingPacket packet{.device = device, .meta = datagram.meta, .bytes = datagram.bytes};
  // The queue is this gateway's own congestion: its senders slow down as for a switch's mark.
  if ((packet.meta.traffic_class & wire::kEcnMask) != 0) packet.meta.traffic_class |= wire::kEcnCe;
  const PoolQueues::Put put = uses_.waiting.Push(pool, packet);
  if (put == PoolQueues::Put::kNoQueue) return false;
  uses_.counters.rx_packets.Add();
  uses_.counters.rx_bytes.Add(datagram.bytes.size());
  if (put == PoolQueues::Put::kFull) uses_.counters.Drop(DropReason::k_handoff_full);
  return true;
}

bool PacketIntake::TakeWaiting(TimePoint now, bool all) {
  for (size_t i = 0; i < uses_.waiting.size(); ++i) {
    PoolQueues::Queue& queue = uses_.waiting.at(i);
    while (!queue.packets.empty()) {
      uint64_t oldest = queue.packets.begin();
      Account* const pool = uses_.demultiplexer.PoolOf(queue.packets.Next(oldest));
      // If the pool was closed, its packets find no queue pair or one of another pool.
      const bool alive = pool == queue.pool;
      if (!all && alive && uses_.scheduler.InDebt(*pool)) {
        uses_.scheduler.Wait(*pool);
        break;
      }
      TakeSome(queue, now);
    }
  }
  uses_.waiting.FreeEmpty();
  return true;
}

// Processes some packets of a queue and charges their pools.
void PacketIntake::TakeSome(PoolQueues::Queue& queue, TimePoint now) {
  const uint32_t count = std::min(queue.packets.size(), kWaitingAtOnce);
  uses_.scheduler.Mark();
  uses_.memory.BeginBurst(count);
  uint64_t at = queue.packets.begin();
  for (uint32_t i = 0; i < count; ++i) {
    uses_.memory.NextDatagram();
    uses_.demultiplexer.OnWaiting(queue.packets.Next(at), now);
  }
  uses_.scheduler.ChargeNoted();
  queue.PopBefore(at, count, uses_.memory.Flush());
}

// Processes the burst pool by pool and charges each pool its own time. Cache warmth of the queue
// pair, not packet length, dominates the cost.
void PacketIntake::TakeByPool(uint32_t device, std::span<const wire::RxDatagram> burst,
                              TimePoint now) {
  std::array<Account*, kContendedBurst> pools;
  uint32_t left = 0;
  uint32_t late = 0;
  for (size_t i = 0; i < burst.size(); ++i) {
    // Channels have no pool, because they carry the frames of any: the demultiplexer divides those.
    Account* const pool = uses_.demultiplexer.PoolOf(port::DestinationQpn(burst[i].bytes));
    pools[i] = pool;
    if (pool != nullptr) uses_.scheduler.Note(*pool, 1, burst[i].bytes.size());
    (pool != nullptr && uses_.demultiplexer.MustWait(*pool) ? late : left) |= 1u << i;
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
      // A bundle may have dozens of frames of a pool that runs out of time meanwhile.
      if (pool == nullptr) uses_.scheduler.ChargeNoted();
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
    uses_.counters.handoff_rx_packets.Add(TakeHandedOver(ring, now));
    uses_.demultiplexer.EndBurst();
    busy = true;
  }
  return busy;
}

// Processes the datagrams of a ring and charges their pools. Returns how many.
uint32_t PacketIntake::TakeHandedOver(HandoffRing& datagrams, TimePoint now) {
  const uint32_t count = datagrams.size();
  uses_.scheduler.Mark();
  uses_.memory.BeginBurst(count);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t device = 0;
    uses_.memory.NextDatagram();
    const wire::RxDatagram datagram = datagrams.At(i, device);
    // The port of the worker that received it knows nothing of this one's flood.
    if (uses_.flood.watching() && !uses_.flood.Passes(datagram.meta.source, datagram.bytes)) {
      uses_.counters.Drop(DropReason::k_flood);
      continue;
    }
    uses_.demultiplexer.OnDatagram(device, datagram, now);
  }
  uses_.scheduler.ChargeNoted();
  datagrams.Pop(count, uses_.memory.Flush());
  return count;
}

}  // namespace rocegw::worker
