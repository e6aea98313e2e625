// SPDX-License-Identifier: Apache-2.0
// Queue pairs of all workers that are attached to multicast groups, by device and group
// (IBTA 9.8.3, annex A17). Each worker has all of them, because packets arrive at any worker.
// Belongs to one worker.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/wire/datagram.h"

namespace rocegw::worker {

class MulticastGroups {
 public:
  void Attach(uint32_t device, const wire::Gid& group, Qpn qpn) {
    groups_[{device, group}].push_back(qpn);
  }
  // Returns false if the queue pair is not attached.
  bool Detach(uint32_t device, const wire::Gid& group, Qpn qpn) {
    const auto found = groups_.find({device, group});
    if (found == groups_.end() || std::erase(found->second, qpn) == 0) return false;
    if (found->second.empty()) groups_.erase(found);
    return true;
  }
  // Returns nullptr if there is no member.
  const std::vector<Qpn>* Members(uint32_t device, const wire::Gid& group) const {
    const auto found = groups_.find({device, group});
    return found == groups_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::pair<uint32_t, wire::Gid>, std::vector<Qpn>> groups_;
};

}  // namespace rocegw::worker
