// SPDX-License-Identifier: Apache-2.0
// The channels that an endpoint has something to do with right now: its place in each one's line,
// and how many of its messages and answers need it. One goes with the last of them, so that what an
// endpoint keeps does not grow with the gateways it has ever talked to. Belongs to one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/flow/carrier.h"
#include "gateway/transport/qp_context.h"

namespace rocegw::transport {

class EndpointLanes {
 public:
  ~EndpointLanes() { Clear(); }

  // A message or an answer begins, or ends, to need the channel.
  void Use(const QpContext& qp, flow::Carrier& carrier);
  void Leave(const flow::Carrier& carrier);
  bool MaySend(flow::Carrier& carrier, uint32_t bytes, TimePoint now);
  Psn OnSent(flow::Carrier& carrier, const flow::FrameRef& frame, uint32_t bytes, TimePoint now);
  void OnTurn(const flow::Carrier& carrier);
  // The channel is gone.
  void Drop(const flow::Carrier& carrier);
  void Clear();
  size_t size() const { return lanes_.size(); }

 private:
  struct Lane {
    flow::Carrier* carrier = nullptr;
    flow::LinePlace place;
    uint32_t uses = 0;
  };
  // A line knows the queue pair, not the place: places may move.
  Lane* Find(const flow::Carrier& carrier);
  void Sweep(Lane& lane);

  std::vector<Lane> lanes_;
};

}  // namespace rocegw::transport
