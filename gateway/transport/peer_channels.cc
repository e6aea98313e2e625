// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/peer_channels.h"

#include <algorithm>

#include "gateway/transport/qp_context.h"

namespace rocegw::transport {

const Lanes::Lane* Lanes::Find(const flow::Carrier& carrier) const {
  for (const Lane& lane : lanes_)
    if (lane.carrier == &carrier) return &lane;
  return nullptr;
}

uint32_t Lanes::UsesOf(const flow::Carrier& carrier) const {
  const Lane* const lane = Find(carrier);
  return lane == nullptr ? 0 : lane->uses;
}

flow::LinePlace* Lanes::PlaceOf(const flow::Carrier& carrier) {
  Lane* const lane = Find(carrier);
  return lane == nullptr ? nullptr : &lane->place;
}

void Lanes::Use(flow::Carrier& carrier) {
  Lane* lane = Find(carrier);
  if (lane == nullptr) {
    carrier.Hold();
    lanes_.push_back({&carrier, {}, 0});
    lane = &lanes_.back();
  }
  ++lane->uses;
}

void Lanes::Leave(const flow::Carrier& carrier) {
  Lane* lane = Find(carrier);
  if (lane == nullptr) return;
  if (lane->uses != 0) --lane->uses;
  Sweep(*lane);
}

// Removes an unused entry. One in a wait queue stays until its turn, one with payload in flight
// until all has arrived.
void Lanes::Sweep(Lane& lane) {
  if (lane.uses != 0 || lane.place.waiting || lane.under_way != 0) return;
  lane.carrier->Release();
  lane = lanes_.back();
  lanes_.pop_back();
}

bool Lanes::MaySend(const flow::LineMember& who, flow::Carrier& carrier, uint32_t bytes,
                    TimePoint now) {
  Lane* lane = Find(carrier);
  return lane != nullptr && carrier.MaySend(who, lane->place, bytes, now);
}

Lanes::UnderWay Lanes::UnderWayTo(const wire::Gid& peer) const {
  UnderWay all;
  for (const Lane& lane : lanes_) {
    if (lane.under_way == 0 || lane.carrier->peer() != peer) continue;
    all.bytes += lane.under_way;
    all.unasked += lane.unasked;
  }
  return all;
}

// The window limits payload only, so frames without payload always pass it.
bool Lanes::MaySend(QpContext& qp, flow::Carrier& carrier, uint32_t bytes, TimePoint now) {
  if (qp.bounded && bytes != 0 && !qp.Fits(UnderWayTo(carrier.peer()).bytes, bytes)) {
    if (Lane* const lane = Find(carrier)) lane->wants_room = true;
    return false;
  }
  return MaySend(qp.line_member(), carrier, bytes, now);
}

Psn Lanes::OnSent(QpContext& qp, flow::Carrier& carrier, const flow::FrameRef& frame,
                  uint32_t bytes, TimePoint now) {
  Lane& lane = *Find(carrier);
  if (qp.bounded) {
    carrier.TellArrivals();
    lane.under_way += bytes;
    lane.unasked += bytes;
    qp.asks_ack = qp.AsksAck(UnderWayTo(carrier.peer()).unasked);
    if (qp.asks_ack) lane.unasked = 0;
  }
  return carrier.OnSent(qp.line_member(), lane.place, frame, bytes, now);
}

bool Lanes::OnArrived(const flow::Carrier& carrier, uint32_t bytes) {
  Lane* const from = Find(carrier);
  if (from == nullptr) return false;
  from->under_way -= std::min(from->under_way, bytes);
  from->unasked = std::min(from->unasked, from->under_way);
  bool waited = false;
  for (Lane& lane : lanes_) {
    if (!lane.wants_room || lane.carrier->peer() != carrier.peer()) continue;
    lane.wants_room = false;
    waited = true;
  }
  Sweep(*from);
  return waited;
}

void Lanes::OnTurn(const flow::Carrier& carrier) {
  Lane* lane = Find(carrier);
  if (lane == nullptr) return;
  lane->place.waiting = false;
  Sweep(*lane);
}

void Lanes::Drop(const flow::Carrier& carrier) {
  Lane* lane = Find(carrier);
  if (lane == nullptr) return;
  lane->uses = lane->under_way = 0;
  lane->place.waiting = false;
  Sweep(*lane);
}

void Lanes::Clear() {
  for (const Lane& lane : lanes_) lane.carrier->Release();
  lanes_.clear();
}

}  // namespace rocegw::transport
