// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/destination_table.h"

namespace rocegw::port {

DestinationTable::Answer DestinationTable::LookUp(const wire::Gid& destination, bool* added) {
  auto at = entries_.find(destination);
  *added = at == entries_.end();
  if (*added) {
    if (entries_.size() >= most_) {
      const auto first = order_.begin();
      entries_.erase(std::get<wire::Gid>(*first));
      order_.erase(first);
    }
    at = entries_.try_emplace(destination).first;
    fresh_.emplace(look_ups_ + 1, destination);
    // The queue has entries of destinations that made room.
    if (fresh_.size() > most_) fresh_.erase(fresh_.begin());
  } else {
    order_.erase(RankOf(*at));
  }
  at->second.used = ++look_ups_;
  order_.insert(RankOf(*at));
  return at->second.answer;
}

bool DestinationTable::Set(const wire::Gid& destination, const Answer& answer) {
  const auto at = entries_.find(destination);
  if (at == entries_.end() || at->second.answer == answer) return false;
  order_.erase(RankOf(*at));
  at->second.answer = answer;
  order_.insert(RankOf(*at));
  return true;
}

std::vector<wire::Gid> DestinationTable::TakeFresh(size_t most) {
  std::vector<wire::Gid> taken;
  while (!fresh_.empty() && taken.size() < most) {
    const wire::Gid destination = fresh_.begin()->second;
    fresh_.erase(fresh_.begin());
    if (entries_.contains(destination)) taken.push_back(destination);
  }
  return taken;
}

std::vector<wire::Gid> DestinationTable::List(bool all) const {
  std::vector<wire::Gid> listed;
  for (const auto& [destination, entry] : entries_) {
    if (all || entry.answer.reach != Reach::kNeighbour) listed.push_back(destination);
  }
  return listed;
}

}  // namespace rocegw::port
