// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/xrc_domain.h"

#include <algorithm>

namespace rocegw::transport {

bool XrcDomain::Add(const XrcReceiver& receiver) {
  return receivers_.emplace(receiver.receives->config().number, receiver).second;
}

void XrcDomain::Remove(uint32_t number) {
  if (receivers_.erase(number) == 0) return;
  for (XrcMember* const member : members_) member->Forget(number);
}

const XrcReceiver* XrcDomain::Find(uint32_t number) const {
  const auto it = receivers_.find(number);
  return it == receivers_.end() ? nullptr : &it->second;
}

void XrcDomain::Leave(XrcMember& member) {
  const auto it = std::ranges::find(members_, &member);
  if (it == members_.end()) return;
  *it = members_.back();
  members_.pop_back();
}

}  // namespace rocegw::transport
