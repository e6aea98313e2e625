// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/held_attaches.h"

#include <algorithm>
#include <utility>

namespace rocegw::session {

uint64_t HeldAttaches::Add(HeldAttach& attach, TimePoint now) {
  const auto of_pool = std::ranges::count_if(
      held_, [&](const auto& entry) { return entry.second.attach.pool_id == attach.pool_id; });
  if (held_.size() >= kMost || static_cast<size_t>(of_pool) >= kMostOfPool) return 0;
  const uint64_t id = next_id_++;
  const bool greeted = attach.greeted;
  held_.emplace(id, Entry{std::move(attach), now + within_});
  if (greeted) TellWaiters();
  return id;
}

uint64_t HeldAttaches::Greeted(uint64_t id) {
  auto node = held_.extract(id);
  if (node.empty()) return 0;
  node.key() = next_id_++;
  node.mapped().attach.greeted = true;
  const uint64_t now_known_as = node.key();
  held_.insert(std::move(node));
  TellWaiters();
  return now_known_as;
}

std::optional<HeldAttach> HeldAttaches::Take(uint64_t id) {
  auto node = held_.extract(id);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped().attach);
}

std::vector<HeldAttach> HeldAttaches::TakeExpired(TimePoint now) {
  std::vector<HeldAttach> expired;
  for (auto it = held_.begin(); it != held_.end();) {
    if (it->second.until > now) {
      ++it;
      continue;
    }
    expired.push_back(std::move(it->second.attach));
    it = held_.erase(it);
  }
  return expired;
}

const HeldAttach* HeldAttaches::Find(uint64_t id) const {
  const auto found = held_.find(id);
  return found == held_.end() ? nullptr : &found->second.attach;
}

std::vector<HeldRow> HeldAttaches::Rows() const {
  std::vector<HeldRow> rows;
  for (const auto& [id, entry] : held_) {
    const HeldAttach& attach = entry.attach;
    if (!attach.greeted) continue;
    rows.push_back({id, attach.pool, attach.path, attach.peer.pid, attach.peer.uid, attach.peer.gid,
                    attach.peer.start_time, attach.peer.cgroup, attach.peer.comm});
  }
  return rows;
}

void HeldAttaches::Tell(uint64_t after, TimePoint until, Told told, TimePoint now) {
  std::vector<HeldRow> rows = Rows();
  // An id of an earlier daemon, which began when the wall clock was ahead.
  if (after >= next_id_) after = 0;
  if (!rows.empty() && rows.back().id > after) return told(std::move(rows));
  if (stopped_ || until <= now) return told({});
  if (waiters_.size() >= kMostWaiters) {
    const Told first = std::move(waiters_.front().told);
    waiters_.erase(waiters_.begin());
    first({});
  }
  waiters_.push_back({after, until, std::move(told)});
}

void HeldAttaches::TellWaiters() {
  for (const Waiter& waiter : std::exchange(waiters_, {})) waiter.told(Rows());
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
  TimePoint earliest = kNever;
  for (const auto& [id, entry] : held_) earliest = std::min(earliest, entry.until);
  for (const Waiter& waiter : waiters_) earliest = std::min(earliest, waiter.until);
  return earliest;
}

}  // namespace rocegw::session
