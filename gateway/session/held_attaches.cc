// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/held_attaches.h"

#include <algorithm>
#include <utility>

namespace rocegw::session {

uint64_t HeldAttaches::Add(HeldAttach& attach, TimePoint now) {
  const auto of_pool = std::ranges::count_if(
      held_, [&](const auto& entry) { return entry.second.attach.pool_id == attach.pool_id; });
  if (held_.size() >= kMost || static_cast<size_t>(of_pool) >= kMostOfPool) return 0;
  const uint64_t id = next_id_++;
  held_.emplace(id, Entry{std::move(attach), now + within_});
  TellAll(std::exchange(waiters_, {}));
  return id;
}

std::optional<HeldAttach> HeldAttaches::Take(uint64_t id) {
  auto node = held_.extract(id);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped().attach);
}

std::vector<HeldAttach> HeldAttaches::TakeExpired(TimePoint now) {
  std::vector<HeldAttach> expired;
  while (!held_.empty() && held_.begin()->second.until <= now) {
    expired.push_back(std::move(held_.begin()->second.attach));
    held_.erase(held_.begin());
  }
  return expired;
}

std::vector<HeldAttach> HeldAttaches::TakeAll() {
  std::vector<HeldAttach> all;
  for (auto& [id, entry] : held_) all.push_back(std::move(entry.attach));
  held_.clear();
  return all;
}

const HeldAttach* HeldAttaches::Find(uint64_t id) const {
  const auto found = held_.find(id);
  return found == held_.end() ? nullptr : &found->second.attach;
}

std::vector<HeldRow> HeldAttaches::Rows() const {
  std::vector<HeldRow> rows;
  for (const auto& [id, entry] : held_) {
    const HeldAttach& attach = entry.attach;
    rows.push_back({id, attach.pool, attach.path, attach.peer.pid, attach.peer.uid, attach.peer.gid,
                    attach.peer.start_time, attach.peer.cgroup, attach.peer.comm});
  }
  return rows;
}

void HeldAttaches::Tell(uint64_t after, TimePoint until, Told told, TimePoint now) {
  const bool has_news = !held_.empty() && held_.rbegin()->first > after;
  if (has_news) return told(Rows());
  if (stopped_ || until <= now) return told({});
  if (waiters_.size() >= kMostWaiters) {
    const Told first = std::move(waiters_.front().told);
    waiters_.erase(waiters_.begin());
    first({});
  }
  waiters_.push_back({after, until, std::move(told)});
}

void HeldAttaches::TellAll(std::vector<Waiter> waiters) {
  for (const Waiter& waiter : waiters) waiter.told(Rows());
}

void HeldAttaches::TellExpired(TimePoint now) {
  std::vector<Waiter> expired;
  std::erase_if(waiters_, [&](Waiter& waiter) {
    if (waiter.until > now) return false;
    expired.push_back(std::move(waiter));
    return true;
  });
  for (const Waiter& waiter : expired) waiter.told({});
}

void HeldAttaches::StopTelling() {
  stopped_ = true;
  for (const Waiter& waiter : std::exchange(waiters_, {})) waiter.told({});
}

TimePoint HeldAttaches::deadline() const {
  TimePoint earliest = held_.empty() ? kNever : held_.begin()->second.until;
  for (const Waiter& waiter : waiters_) earliest = std::min(earliest, waiter.until);
  return earliest;
}

}  // namespace rocegw::session
