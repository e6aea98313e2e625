// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/message/multipath.h"

namespace rocegw::transport {

std::vector<Qpn> Multipath::Numbers() const {
  std::vector<Qpn> numbers;
  for (size_t i = 0; i < channels_.size(); ++i) numbers.push_back(channels_.At(i).number());
  return numbers;
}

void Multipath::AddForRequests(flow::Carrier& carrier) {
  if (!ForRequests(carrier)) channels_.Use(carrier);
}

bool Multipath::AddForAnswers(flow::Carrier& carrier) {
  if ((channels_.UsesOf(carrier) & kAnswers) != 0) return true;
  if (!Has(carrier) && channels_.size() >= wire::kMostPaths) return false;
  for (uint32_t use = 0; use < kAnswers; ++use) channels_.Use(carrier);
  return true;
}

flow::Carrier* Multipath::Choose(const flow::WindowWaiter& waiter, flow::Carrier& own,
                                 flow::WaitEntry& own_entry, uint32_t bytes, uint32_t asked,
                                 TimePoint now) {
  const size_t paths = channels_.size() + 1;
  if (left_ <= 0) ++path_;
  for (size_t tried = 0; tried < paths; ++tried, ++path_) {
    path_ %= paths;
    if (tried != 0 || left_ <= 0) left_ = kQuantum;
    flow::Carrier& carrier = path_ == 0 ? own : channels_.At(path_ - 1);
    const bool room = path_ == 0 ? own.MaySend(waiter, own_entry, bytes, now)
                                 : channels_.MaySend(waiter, carrier, bytes, now);
    if (!room) continue;
    left_ -= int64_t{bytes} + asked + int64_t{wire::kFrameBaseLength};
    return &carrier;
  }
  return nullptr;
}

}  // namespace rocegw::transport
