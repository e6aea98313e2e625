// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/early_requests.h"

namespace rocegw::cm {
namespace {

const wire::CmReq& Request(const EarlyRequests::Held& held) {
  return *std::get_if<wire::CmReq>(&held.mad.body);
}

}  // namespace

EarlyRequests::Name EarlyRequests::NameOf(const Held& request) {
  const wire::CmReq& req = Request(request);
  return {request.meta.source, req.local_ca_guid, req.local_comm_id};
}

EarlyRequests::Rank EarlyRequests::RankOf(const wire::Gid& source, const Numbers& numbers) {
  return {numbers.size(), UINT64_MAX - *numbers.begin(), source};
}

EarlyRequests::Verdict EarlyRequests::Hold(const Held& request, std::optional<Held>& displaced) {
  if (names_.contains(NameOf(request))) return Verdict::kAlready;
  if (held_.size() >= most_) {
    displaced = MakeRoom(request.meta.source);
    if (!displaced.has_value()) return Verdict::kFull;
  }
  Enter(request);
  return Verdict::kHeld;
}

void EarlyRequests::Enter(const Held& request) {
  const wire::Gid& source = request.meta.source;
  held_.emplace_hint(held_.end(), ++last_, request);
  names_.insert(NameOf(request));
  Numbers& numbers = by_source_[source];
  if (!numbers.empty()) ranks_.erase(RankOf(source, numbers));
  numbers.insert(last_);
  ranks_.insert(RankOf(source, numbers));
}

EarlyRequests::Held EarlyRequests::Remove(uint64_t number) {
  const Held removed = held_.extract(number).mapped();
  names_.erase(NameOf(removed));
  const auto at = by_source_.find(removed.meta.source);
  ranks_.erase(RankOf(at->first, at->second));
  at->second.erase(number);
  if (at->second.empty()) {
    by_source_.erase(at);
  } else {
    ranks_.insert(RankOf(at->first, at->second));
  }
  return removed;
}

std::optional<EarlyRequests::Held> EarlyRequests::MakeRoom(const wire::Gid& source) {
  if (ranks_.empty()) return std::nullopt;
  const auto& [most, age, greediest] = *ranks_.rbegin();
  const auto own = by_source_.find(source);
  if (own != by_source_.end() && own->second.size() >= most) return std::nullopt;
  return Remove(UINT64_MAX - age);
}

std::vector<EarlyRequests::Held> EarlyRequests::TakeFor(uint64_t service_id) {
  std::vector<Held> taken;
  for (auto at = held_.begin(); at != held_.end();) {
    const auto& [number, held] = *at++;
    if (Request(held).service_id == service_id) taken.push_back(Remove(number));
  }
  return taken;
}

std::vector<EarlyRequests::Held> EarlyRequests::TakeDue(TimePoint now) {
  std::vector<Held> taken;
  while (deadline() <= now) taken.push_back(Remove(held_.begin()->first));
  return taken;
}

}  // namespace rocegw::cm
