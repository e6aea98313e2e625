// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message/peer_channels.h"

#include <algorithm>

#include "gateway/transport/qp_context.h"

namespace rocegw::transport {

const PeerChannels::PeerChannel* PeerChannels::Find(const flow::Carrier& carrier) const {
  for (const PeerChannel& entry : channels_)
    if (entry.carrier == &carrier) return &entry;
  return nullptr;
}

uint32_t PeerChannels::UsesOf(const flow::Carrier& carrier) const {
  const PeerChannel* const entry = Find(carrier);
  return entry == nullptr ? 0 : entry->uses;
}

flow::WaitEntry* PeerChannels::WaitEntryOf(const flow::Carrier& carrier) {
  PeerChannel* const entry = Find(carrier);
  return entry == nullptr ? nullptr : &entry->wait_entry;
}

void PeerChannels::Use(flow::Carrier& carrier) {
  PeerChannel* entry = Find(carrier);
  if (entry == nullptr) {
    carrier.Hold();
    channels_.push_back({&carrier, {}, 0});
    entry = &channels_.back();
  }
  ++entry->uses;
}

void PeerChannels::Leave(const flow::Carrier& carrier) {
  PeerChannel* entry = Find(carrier);
  if (entry == nullptr) return;
  if (entry->uses != 0) --entry->uses;
  Sweep(*entry);
}

// Removes an unused entry. One in a wait queue stays until its turn, one with payload in flight
// until all has arrived.
void PeerChannels::Sweep(PeerChannel& entry) {
  if (entry.uses != 0 || entry.wait_entry.waiting || entry.in_flight != 0) return;
  entry.carrier->Release();
  entry = channels_.back();
  channels_.pop_back();
}

bool PeerChannels::MaySend(const flow::WindowWaiter& waiter, flow::Carrier& carrier, uint32_t bytes,
                           TimePoint now) {
  PeerChannel* entry = Find(carrier);
  return entry != nullptr && carrier.MaySend(waiter, entry->wait_entry, bytes, now);
}

PeerChannels::InFlight PeerChannels::UnderWayTo(const wire::Gid& peer) const {
  InFlight all;
  for (const PeerChannel& entry : channels_) {
    if (entry.in_flight == 0 || entry.carrier->peer() != peer) continue;
    all.bytes += entry.in_flight;
    all.unasked += entry.unasked;
  }
  return all;
}

// The window limits payload only, so frames without payload always pass it.
bool PeerChannels::MaySend(QpContext& qp, flow::Carrier& carrier, uint32_t bytes, TimePoint now) {
  if (qp.bounded && bytes != 0 && !qp.Fits(UnderWayTo(carrier.peer()).bytes, bytes)) {
    if (PeerChannel* const entry = Find(carrier)) entry->wants_room = true;
    return false;
  }
  return MaySend(qp.window_waiter(), carrier, bytes, now);
}

Psn PeerChannels::OnSent(QpContext& qp, flow::Carrier& carrier, const flow::FrameRef& frame,
                         uint32_t bytes, TimePoint now) {
  PeerChannel& entry = *Find(carrier);
  if (qp.bounded) {
    carrier.ReportArrivals();
    entry.in_flight += bytes;
    entry.unasked += bytes;
    qp.asks_ack = qp.AsksAck(UnderWayTo(carrier.peer()).unasked);
    if (qp.asks_ack) entry.unasked = 0;
  }
  return carrier.OnSent(qp.window_waiter(), entry.wait_entry, frame, bytes, now);
}

bool PeerChannels::OnArrived(const flow::Carrier& carrier, uint32_t bytes) {
  PeerChannel* const from = Find(carrier);
  if (from == nullptr) return false;
  from->in_flight -= std::min(from->in_flight, bytes);
  from->unasked = std::min(from->unasked, from->in_flight);
  bool waited = false;
  for (PeerChannel& entry : channels_) {
    if (!entry.wants_room || entry.carrier->peer() != carrier.peer()) continue;
    entry.wants_room = false;
    waited = true;
  }
  Sweep(*from);
  return waited;
}

void PeerChannels::OnTurn(const flow::Carrier& carrier) {
  PeerChannel* entry = Find(carrier);
  if (entry == nullptr) return;
  entry->wait_entry.waiting = false;
  Sweep(*entry);
}

void PeerChannels::Drop(const flow::Carrier& carrier) {
  PeerChannel* entry = Find(carrier);
  if (entry == nullptr) return;
  entry->uses = entry->in_flight = 0;
  entry->wait_entry.waiting = false;
  Sweep(*entry);
}

void PeerChannels::Clear() {
  for (const PeerChannel& entry : channels_) entry.carrier->Release();
  channels_.clear();
}

}  // namespace rocegw::transport
