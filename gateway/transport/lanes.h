// SPDX-License-Identifier: Apache-2.0
// Channels that a queue pair leaves by beside the one it may be bound to: its place in each one's
// line, and how many of its messages and answers need it. An endpoint has one as long as something
// is under way there, so that what it keeps does not grow with the gateways it has ever talked to.
// Of a pool with a window it has as much under way to each of them, by all channels there: as many
// connections would have that, and one that does not get on holds up none of the others. Belongs to
// one worker.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gateway/flow/carrier.h"

namespace rocegw::transport {

struct QpContext;

class Lanes {
 public:
  Lanes() = default;
  ~Lanes() { Clear(); }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // A message or an answer of the queue pair begins to need the channel.
  void Use(flow::Carrier& carrier);
  // It ends to.
  void Leave(const flow::Carrier& carrier);
  // 0: it has no place there, or only waits to leave the line or for frames to arrive.
  uint32_t UsesOf(const flow::Carrier& carrier) const;
  bool Has(const flow::Carrier& carrier) const { return Find(carrier) != nullptr; }
  bool MaySend(const flow::LineMember& who, flow::Carrier& carrier, uint32_t bytes, TimePoint now);
  // An endpoint's: within the window of its pool.
  bool MaySend(QpContext& qp, flow::Carrier& carrier, uint32_t bytes, TimePoint now);
  Psn OnSent(QpContext& qp, flow::Carrier& carrier, const flow::FrameRef& frame, uint32_t bytes,
             TimePoint now);
  // So much payload is not under way any more. True: some for the same gateway did not fit into the
  // window beside it.
  bool OnArrived(const flow::Carrier& carrier, uint32_t bytes);
  void OnTurn(const flow::Carrier& carrier);
  // The channel is gone.
  void Drop(const flow::Carrier& carrier);
  void Clear();

  size_t size() const { return lanes_.size(); }
  flow::Carrier& At(size_t place) const { return *lanes_[place].carrier; }
  // nullptr: it has none there.
  flow::LinePlace* PlaceOf(const flow::Carrier& carrier);

 private:
  struct Lane {
    flow::Carrier* carrier = nullptr;
    flow::LinePlace place;
    uint32_t uses = 0;
    // Of a pool with a window:
    uint32_t under_way = 0;   // payload that has not arrived
    uint32_t unasked = 0;     // of it, behind the last frame that asked for an acknowledgement
    bool wants_room = false;  // something for here does not fit into the window
  };
  struct UnderWay {
    uint32_t bytes = 0;
    uint32_t unasked = 0;
  };
  // A line knows the queue pair, not the place: places may move.
  const Lane* Find(const flow::Carrier& carrier) const;
  Lane* Find(const flow::Carrier& carrier) {
    return const_cast<Lane*>(std::as_const(*this).Find(carrier));
  }
  UnderWay UnderWayTo(const wire::Gid& peer) const;
  void Sweep(Lane& lane);

  std::vector<Lane> lanes_;
};

}  // namespace rocegw::transport
