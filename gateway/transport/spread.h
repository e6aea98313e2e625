// SPDX-License-Identifier: Apache-2.0
// The ways of a connected queue pair whose frames may take any: channels to the same worker of the
// peer beside its own, each by another path through the network. Frames stay on one way for a turn,
// so that they leave in bursts, and take another when that one has no room: ways that are faster,
// or wider, carry more. Only requests that ask for no order, and what answers them, are spread; the
// receiver puts messages together whatever way their frames have come. Belongs to one worker.
#pragma once

#include <vector>

#include "gateway/transport/lanes.h"

namespace rocegw::transport {

class Spread {
 public:
  bool Has(const flow::Carrier& carrier) const { return lanes_.Has(carrier); }
  // One more way, until it is dropped.
  void Add(flow::Carrier& carrier) { lanes_.Use(carrier); }
  void Drop(const flow::Carrier& carrier) { lanes_.Drop(carrier); }
  size_t size() const { return lanes_.size(); }
  const flow::Carrier& At(size_t place) const { return lanes_.At(place); }
  std::vector<Qpn> Numbers() const;

  // The way of a frame that leaves now. nullptr: there is no room on any, and the queue pair stands
  // in every line. `asked`: bytes that it asks for, which will come back the same way.
  flow::Carrier* Choose(const flow::LineMember& who, flow::Carrier& own, flow::LinePlace& own_place,
                        uint32_t bytes, uint32_t asked, TimePoint now);
  // nullptr: it is none of them.
  flow::LinePlace* PlaceOf(const flow::Carrier& carrier) { return lanes_.PlaceOf(carrier); }

 private:
  // Bytes that leave one way before the next has its turn: that of a line, too.
  static constexpr int32_t kTurn = 16 * 1024;

  Lanes lanes_;
  size_t way_ = 0;  // 0 is the queue pair's own
  int64_t left_ = kTurn;
};

}  // namespace rocegw::transport
