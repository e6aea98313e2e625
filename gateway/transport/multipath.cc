// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/multipath.h"

#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

std::vector<Qpn> Spread::Numbers() const {
  std::vector<Qpn> numbers;
  for (size_t i = 0; i < lanes_.size(); ++i) numbers.push_back(lanes_.At(i).number());
  return numbers;
}

flow::Carrier* Spread::Choose(const flow::LineMember& who, flow::Carrier& own,
                              flow::LinePlace& own_place, uint32_t bytes, uint32_t asked,
                              TimePoint now) {
  const size_t ways = lanes_.size() + 1;
  if (left_ <= 0) ++way_;
  for (size_t tried = 0; tried < ways; ++tried, ++way_) {
    way_ %= ways;
    if (tried != 0 || left_ <= 0) left_ = kTurn;
    flow::Carrier& carrier = way_ == 0 ? own : lanes_.At(way_ - 1);
    const bool room = way_ == 0 ? own.MaySend(who, own_place, bytes, now)
                                : lanes_.MaySend(who, carrier, bytes, now);
    if (!room) continue;
    left_ -= int64_t{bytes} + asked + int64_t{wire::kFrameBaseLength};
    return &carrier;
  }
  return nullptr;
}

}  // namespace rocegw::transport
