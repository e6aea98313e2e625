// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/endpoint/orphan_messages.h"

namespace rocegw::transport {

void OrphanMessages::AddUntil(const MessageName& name, TimePoint until) {
  if (!names_.insert(name).second) return;
  if (by_age_.size() >= kMost) DropOldest();
  by_age_.push_back({name, until});
}

void OrphanMessages::DropOldest() {
  names_.erase(by_age_.front().name);
  by_age_.pop_front();
}

void OrphanMessages::Expire(TimePoint now) {
  while (!by_age_.empty() && by_age_.front().until < now) DropOldest();
}

void OrphanMessages::OnCarrierLost(const flow::Carrier& carrier) {
  std::erase_if(by_age_, [&](const Orphan& orphan) {
    return orphan.name.carrier == &carrier && names_.erase(orphan.name) != 0;
  });
}

}  // namespace rocegw::transport
