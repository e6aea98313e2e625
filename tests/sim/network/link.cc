// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/link.h"

#include <algorithm>
#include <utility>

#include "tests/sim/network/network.h"

namespace rocegw::sim {
namespace {

constexpr uint64_t kHead = 0;  // event argument: the first of the packets in order

}  // namespace

Link::Link(Network& network, uint32_t number, const LinkConfig& config, Node& to, std::string name)
    : network_(network),
      number_(number),
      config_(config),
      to_(to),
      name_(std::move(name)),
      ps_per_byte_x1024_(
          static_cast<int64_t>(8.0 * 1024 * 1e12 / static_cast<double>(config.bits_per_second))) {}

void Link::Drain(TimePoint now) {
  const int64_t now_ps = now.ns * 1000;
  while (!departures_.empty() && departures_.front().at_ps <= now_ps) {
    queued_ -= departures_.front().bytes;
    departures_.pop_front();
  }
}

uint64_t Link::queued_bytes(TimePoint now) {
  Drain(now);
  return queued_;
}

size_t Link::queued_packets(TimePoint now) {
  Drain(now);
  return departures_.size();
}

TimePoint Link::Send(Packet* packet, TimePoint ready) {
  const TimePoint now = network_.now();
  Drain(now);
  const uint32_t bytes = packet->wire_bytes();
  StampHint(config_.hints, queued_, *packet);
  if (queued_ + bytes > config_.queue_bytes) {
    ++counters_.tail_drops;
    Tell(LinkEvent::kTailDrop, *packet);
    network_.store().Put(packet);
    return now;
  }
  if ((packet->meta.traffic_class & kEcnMask) != 0 &&
      WantsMark(config_.ecn, queued_, network_.random())) {
    packet->meta.traffic_class |= kCongestionExperienced;
    ++counters_.marked;
  }
  const int64_t begins = std::max(free_at_ps_, ready.ns * 1000);
  free_at_ps_ = begins + bytes * ps_per_byte_x1024_ / 1024;
  departures_.push_back({free_at_ps_, bytes});
  queued_ += bytes;
  counters_.queue_most = std::max(counters_.queue_most, queued_);
  ++counters_.packets;
  counters_.bytes += bytes;
  const TimePoint left{(free_at_ps_ + 999) / 1000};
  Travel(packet, left);
  return left;
}

void Link::Travel(Packet* packet, TimePoint left) {
  Tell(LinkEvent::kLeaves, *packet);
  const TimePoint arrives = left + config_.delay;
  if (faults_.active()) {
    const Faults::Verdict verdict = faults_.Judge(*packet, network_.now());
    switch (verdict.kind) {
      case FaultKind::kNone:
        break;
      case FaultKind::kLose:
        ++counters_.lost;
        counters_.lost_bytes += packet->wire_bytes();
        Tell(LinkEvent::kLost, *packet);
        network_.store().Put(packet);
        return;
      case FaultKind::kDelay: {
        ++counters_.delayed;
        size_t slot = late_.size();
        if (late_free_.empty()) {
          late_.push_back(packet);
        } else {
          slot = late_free_.back();
          late_free_.pop_back();
          late_[slot] = packet;
        }
        network_.queue().At(arrives + verdict.delay, *this, slot + 1);
        return;
      }
      case FaultKind::kDuplicate: {
        ++counters_.duplicated;
        if (travelling_.empty()) network_.queue().At(arrives, *this, kHead);
        travelling_.push_back({arrives.ns, network_.store().Copy(*packet)});
        break;
      }
      case FaultKind::kCorrupt:
        ++counters_.corrupted;
        faults_.Corrupt(*packet);
        break;
      case FaultKind::kMark:
        ++counters_.marked;
        packet->meta.traffic_class |= kCongestionExperienced;
        break;
    }
  }
  if (travelling_.empty()) network_.queue().At(arrives, *this, kHead);
  travelling_.push_back({arrives.ns, packet});
}

void Link::Deliver(Packet* packet) {
  Tell(LinkEvent::kArrives, *packet);
  network_.OnDelivery(number_, *packet);
  to_.Arrive(packet);
}

void Link::OnEvent(uint64_t argument) {
  if (argument != kHead) {
    const size_t slot = argument - 1;
    late_free_.push_back(slot);
    Deliver(late_[slot]);
    return;
  }
  const int64_t now = network_.now().ns;
  // The next event is entered first, because the receiver may send over this link.
  do {
    Packet* packet = travelling_.front().packet;
    travelling_.pop_front();
    const bool more_now = !travelling_.empty() && travelling_.front().arrives <= now;
    if (!more_now && !travelling_.empty()) {
      network_.queue().At({travelling_.front().arrives}, *this, kHead);
    }
    Deliver(packet);
    if (!more_now) return;
  } while (true);
}

}  // namespace rocegw::sim
