// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/endpoint_lanes.h"

namespace rocegw::transport {

EndpointLanes::Lane* EndpointLanes::Find(const flow::Carrier& carrier) {
  for (Lane& lane : lanes_)
    if (lane.carrier == &carrier) return &lane;
  return nullptr;
}

void EndpointLanes::Use(const QpContext& qp, flow::Carrier& carrier) {
  Lane* lane = Find(carrier);
  if (lane == nullptr) {
    carrier.Hold();
    lanes_.push_back({&carrier, {.qp = qp.handle, .tenant = qp.config.tenant_tag}, 0});
    lane = &lanes_.back();
  }
  ++lane->uses;
}

void EndpointLanes::Leave(const flow::Carrier& carrier) {
  Lane* lane = Find(carrier);
  if (lane == nullptr) return;
  if (lane->uses != 0) --lane->uses;
  Sweep(*lane);
}

// One that stands in line stays until its turn comes.
void EndpointLanes::Sweep(Lane& lane) {
  if (lane.uses != 0 || lane.place.waiting) return;
  lane.carrier->Release();
  lane = lanes_.back();
  lanes_.pop_back();
}

bool EndpointLanes::MaySend(flow::Carrier& carrier, uint32_t bytes, TimePoint now) {
  Lane* lane = Find(carrier);
  return lane != nullptr && carrier.MaySend(lane->place, bytes, now);
}

Psn EndpointLanes::OnSent(flow::Carrier& carrier, const flow::FrameRef& frame, uint32_t bytes,
                          TimePoint now) {
  return carrier.OnSent(Find(carrier)->place, frame, bytes, now);
}

void EndpointLanes::OnTurn(const flow::Carrier& carrier) {
  Lane* lane = Find(carrier);
  if (lane == nullptr) return;
  lane->place.waiting = false;
  Sweep(*lane);
}

void EndpointLanes::Drop(const flow::Carrier& carrier) {
  Lane* lane = Find(carrier);
  if (lane == nullptr) return;
  lane->uses = 0;
  lane->place.waiting = false;
  Sweep(*lane);
}

void EndpointLanes::Clear() {
  for (const Lane& lane : lanes_) lane.carrier->Release();
  lanes_.clear();
}

}  // namespace rocegw::transport
