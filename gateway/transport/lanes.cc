// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/lanes.h"

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

// One that stands in line stays until its turn comes.
void Lanes::Sweep(Lane& lane) {
  if (lane.uses != 0 || lane.place.waiting) return;
  lane.carrier->Release();
  lane = lanes_.back();
  lanes_.pop_back();
}

bool Lanes::MaySend(const flow::LineMember& who, flow::Carrier& carrier, uint32_t bytes,
                    TimePoint now) {
  Lane* lane = Find(carrier);
  return lane != nullptr && carrier.MaySend(who, lane->place, bytes, now);
}

Psn Lanes::OnSent(const flow::LineMember& who, flow::Carrier& carrier, const flow::FrameRef& frame,
                  uint32_t bytes, TimePoint now) {
  return carrier.OnSent(who, Find(carrier)->place, frame, bytes, now);
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
  lane->uses = 0;
  lane->place.waiting = false;
  Sweep(*lane);
}

void Lanes::Clear() {
  for (const Lane& lane : lanes_) lane.carrier->Release();
  lanes_.clear();
}

}  // namespace rocegw::transport
