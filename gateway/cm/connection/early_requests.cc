// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/early_requests.h"

#include <algorithm>
#include <map>

namespace rocegw::cm {
namespace {

const wire::CmReq& Request(const EarlyRequests::Held& held) {
  return *std::get_if<wire::CmReq>(&held.mad.body);
}

}  // namespace

EarlyRequests::Verdict EarlyRequests::Hold(const Held& request, std::optional<Held>& displaced) {
  const wire::CmReq& req = Request(request);
  for (const Held& held : held_) {
    if (Request(held).local_ca_guid == req.local_ca_guid &&
        Request(held).local_comm_id == req.local_comm_id) {
      return Verdict::kAlready;
    }
  }
  if (held_.size() >= most_) {
    displaced = MakeRoom(request.meta.source);
    if (!displaced.has_value()) return Verdict::kFull;
  }
  held_.push_back(request);
  return Verdict::kHeld;
}

std::optional<EarlyRequests::Held> EarlyRequests::MakeRoom(const wire::Gid& source) {
  std::map<wire::Gid, size_t> counts;
  for (const Held& held : held_) ++counts[held.meta.source];
  // The first of equals is the oldest.
  const auto first = std::ranges::max_element(
      held_, {}, [&](const Held& held) { return counts[held.meta.source]; });
  if (first == held_.end()) return std::nullopt;
  const auto own = counts.find(source);
  if (own != counts.end() && own->second >= counts[first->meta.source]) return std::nullopt;
  Held displaced = *first;
  held_.erase(first);
  return displaced;
}

std::vector<EarlyRequests::Held> EarlyRequests::TakeFor(uint64_t service_id) {
  const auto first = std::stable_partition(held_.begin(), held_.end(), [&](const Held& held) {
    return Request(held).service_id != service_id;
  });
  std::vector<Held> taken(first, held_.end());
  held_.erase(first, held_.end());
  return taken;
}

std::vector<EarlyRequests::Held> EarlyRequests::TakeDue(TimePoint now) {
  std::vector<Held> taken;
  while (deadline() <= now) {
    taken.push_back(held_.front());
    held_.pop_front();
  }
  return taken;
}

}  // namespace rocegw::cm
