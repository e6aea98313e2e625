// SPDX-License-Identifier: Apache-2.0
// Groups of endpoints on one worker, by number. Belongs to the worker.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "gateway/transport/endpoint/endpoint_group.h"

namespace rocegw::worker {

class GroupTable {
 public:
  // Returns false if the number is in use.
  bool Add(const verbs::GroupConfig& config) {
    return groups_.emplace(config.number.value, config).second;
  }
  // Returns false if the session has no such group.
  bool Remove(SessionId session, Qpn number) {
    return Of(session, number) != nullptr && groups_.erase(number.value) != 0;
  }
  // Return nullptr if there is no such group, or it is another session's.
  transport::EndpointGroup* Find(Qpn number) {
    const auto group = groups_.find(number.value);
    return group == groups_.end() ? nullptr : &group->second;
  }
  transport::EndpointGroup* Of(SessionId session, Qpn number) {
    transport::EndpointGroup* const group = Find(number);
    return group != nullptr && group->config().session == session ? group : nullptr;
  }
  void OnCarrierLost(const flow::Carrier& carrier) {
    for (auto& [number, group] : groups_) group.OnCarrierLost(carrier);
  }
  // Writes the groups, or reads them into the same groups with the same members.
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  std::unordered_map<uint32_t, transport::EndpointGroup> groups_;
};

}  // namespace rocegw::worker
