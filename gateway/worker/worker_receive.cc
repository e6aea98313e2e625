// SPDX-License-Identifier: Apache-2.0
// Receive path: from a port's datagram to its queue pair, or to the worker that owns the queue
// pair.
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>

#include "gateway/wire/codec.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/worker/worker.h"

namespace rocegw::worker {

using metrics::DropReason;

namespace {
// Limits with several active pools, so that no pool waits long for another's packets.
constexpr size_t kContendedBurst = 32;
constexpr int kContendedBursts = 8;
constexpr Duration kContendedTime = Microseconds(10);
}  // namespace

bool Worker::ReceiveAll(TimePoint now) {
  bool busy = false;
  for (uint32_t device = 0; device < options_.ports.size(); ++device) {
    if (!scheduler_.contended()) {
      const size_t count = ReceiveBurst(device, received_, now);
      busy |= count != 0;
      // Payloads are valid until the next Receive: place them before another port is polled.
      if (count != 0 && options_.ports.size() > 1) FlushMemory();
      continue;
    }
    const std::span burst = std::span(received_).first(kContendedBurst);
    for (int i = 0; i < kContendedBursts; ++i) {
      const size_t count = ReceiveBurst(device, burst, now);
      busy |= count != 0;
      if (count == 0) break;
      FlushMemory();
      if (count < burst.size()) break;
      if (scheduler_.charged() > kContendedTime.ns) break;
    }
  }
  return busy;
}

size_t Worker::ReceiveBurst(uint32_t device, std::span<wire::RxDatagram> burst, TimePoint now) {
  scheduler_.Mark();
  const size_t count = options_.ports[device]->Receive(burst);
  if (scheduler_.contended()) {
    TakeByPool(device, burst.first(count), now);
  } else {
    for (const wire::RxDatagram& datagram : burst.first(count)) Take(device, datagram, now);
  }
  scheduler_.ChargeNoted();
  return count;
}

// Processes the burst pool by pool and charges each pool its own time. Cache warmth of the queue
// pair, not packet length, dominates the cost.
void Worker::TakeByPool(uint32_t device, std::span<const wire::RxDatagram> burst, TimePoint now) {
  std::array<const Account*, kContendedBurst> pools;
  uint32_t left = 0;
  for (size_t i = 0; i < burst.size(); ++i) {
    const QpSlot* const slot = SlotOf(port::DestinationQpn(burst[i].bytes));
    Account* const pool =
        slot == nullptr || slot->session == nullptr ? nullptr : slot->session->account;
    pools[i] = pool;
    left |= 1u << i;
    if (pool == nullptr) continue;
    __builtin_prefetch(slot->qp.get());
    scheduler_.Note(*pool, 1, burst[i].bytes.size());
  }
  // Charges the time to receive the burst.
  scheduler_.ChargeNoted();
  while (left != 0) {
    // Only compared, never dereferenced: processing a packet may close its session.
    const Account* const pool = pools[static_cast<size_t>(std::countr_zero(left))];
    for (uint32_t others = left; others != 0; others &= others - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(others));
      if (pools[i] != pool) continue;
      left &= ~(1u << i);
      Take(device, burst[i], now);
    }
    scheduler_.ChargeNoted();
  }
}

void Worker::Take(uint32_t device, const wire::RxDatagram& datagram, TimePoint now) {
  counters_.rx_packets.Add();
  counters_.rx_bytes.Add(datagram.bytes.size());
  const Qpn qpn = port::DestinationQpn(datagram.bytes);
  if (qpn == kMulticastQpn) return OnMulticast(device, datagram, now);
  const WorkerIndex owner = options_.steering.WorkerOf(qpn);
  if (owner == options_.index || owner >= options_.inboxes.size())
    return OnDatagram(device, datagram, now);
  HandOver(owner, device, datagram);
}

void Worker::HandOver(WorkerIndex owner, uint32_t device, const wire::RxDatagram& datagram) {
  WorkerInbox& other = *options_.inboxes[owner];
  if (!other.from[options_.index].Push(device, datagram)) {
    counters_.Drop(DropReason::k_handoff_full);
    return;
  }
  counters_.handoff_tx_packets.Add();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (other.sleeping.load(std::memory_order_relaxed)) {
    const uint64_t one = 1;
    // A write to an eventfd with a full counter also wakes the reader.
    [[maybe_unused]] const ssize_t n = write(other.wake_fd, &one, sizeof one);
  }
}

bool Worker::ReceiveHandedOver(TimePoint now) {
  bool busy = false;
  for (HandoffRing& ring : inbox().from) {
    const uint32_t count = ring.size();
    if (count == 0) continue;
    scheduler_.Mark();
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t device = 0;
      const wire::RxDatagram datagram = ring.At(i, device);
      OnDatagram(device, datagram, now);
    }
    scheduler_.ChargeNoted();
    counters_.handoff_rx_packets.Add(count);
    // Place the payloads before Pop, which returns the slots to the producer.
    FlushMemory();
    ring.Pop(count);
    busy = true;
  }
  return busy;
}

void Worker::OnDatagram(uint32_t device, const wire::RxDatagram& datagram, TimePoint now) {
  wire::RxPacket packet;
  DropReason reason = wire::Decode(datagram, packet);
  if (reason != DropReason::kNone) {
    counters_.Drop(reason);
    return;
  }
  if (!packet.meta.ip_id_known && packet.meta.source.IsV4()) {
    counters_.icrc_id_jump_packets.Add(
        ip_ids_.Observe(packet.meta.source.V4(), packet.meta.ip_id, now));
  }
  if ((packet.meta.traffic_class & wire::kEcnMask) == wire::kEcnCe)
    counters_.rx_ce_marked_packets.Add();
  const Qpn qpn = packet.headers.bth.dest_qpn;
  if (qpn == kGsiQpn) {
    reason = OnMad(device, packet, now);
  } else if (qpn == kMulticastQpn) {
    reason = ToGroup(device, packet, now);
  } else if (packet.traits->service == wire::Service::kChannel) {
    reason = OnChannelPacket(device, packet, now);
  } else {
    reason = ToQueuePair(device, packet, now);
    const bool too_early = reason == DropReason::k_qp_state || reason == DropReason::k_unknown_qpn;
    if (too_early && !options_.link->to_worker.empty()) {
      // The session may have told its program about a change that is still in the ring, and the
      // peer may rely on it. Operations of earlier packets come first: they may concern an object
      // that is about to be unlinked.
      FlushMemory();
      ApplyControl(now);
      reason = ToQueuePair(device, packet, now);
    }
  }
  if (reason != DropReason::kNone) counters_.Drop(reason);
}

DropReason Worker::ToQueuePair(uint32_t device, const wire::RxPacket& packet, TimePoint now) {
  const SlotHandle* const found = qps_.Find(packet.headers.bth.dest_qpn.value);
  if (found == nullptr) return DropReason::k_unknown_qpn;
  const SlotHandle handle = *found;
  QpSlot* const slot = Slot(handle);
  if (slot == nullptr || slot->session == nullptr || slot->qp->context().config.device != device)
    return DropReason::k_unknown_qpn;
  if (slot->session->failed) return DropReason::k_qp_state;
  if (slot->session->backlogged) return DropReason::k_write_pending;
  scheduler_.Note(*slot->session->account, 1, packet.payload.size());
  const DropReason reason = slot->qp->OnPacket(*this, packet, now);
  AfterEvent(*slot, handle);
  return reason;
}

// A flood ends here, not in the ring to the control thread, where it would push out what others
// send.
bool Worker::MayAsk(const wire::Gid& source, TimePoint now) {
  if (channels_.IsMember(source) || known_peers_.contains(source))
    return questions_of_known_.Take(source.bytes, now);
  return questions_of_stranger_.Take(source.bytes, now) && questions_of_strangers_.Take(now);
}

DropReason Worker::OnMad(uint32_t device, const wire::RxPacket& packet, TimePoint now) {
  if (packet.traits->service != wire::Service::kUd) return DropReason::k_wrong_service;
  if (packet.headers.deth.qkey != wire::kGsiQkey) return DropReason::k_wrong_qkey;
  MadReceived mad;
  if (packet.payload.size() != mad.mad.size()) return DropReason::k_mad_malformed;
  if (wire::IsVendorMad(packet.payload) && !MayAsk(packet.meta.source, now))
    return DropReason::k_mad_rate;
  mad.device = device;
  mad.meta = packet.meta;
  mad.source_qpn = packet.headers.deth.source_qpn;
  std::memcpy(mad.mad.data(), packet.payload.data(), mad.mad.size());
  // Management datagrams may be lost; session events may not, so datagrams never displace them.
  if (!unsent_messages_.empty() || !options_.link->to_control.Push({0, mad})) {
    return DropReason::k_mad_rate;
  }
  counters_.mad_rx_packets.Add();
  wake_control_ = true;
  return DropReason::kNone;
}

}  // namespace rocegw::worker
