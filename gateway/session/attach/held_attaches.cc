// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/held_attaches.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace rocegw::session {

namespace {

std::string_view TenantOf(std::string_view pool) { return pool.substr(0, pool.find("/pools/")); }

}  // namespace

uint64_t HeldAttaches::Excess() const {
  if (held_.size() <= kMost) return 0;
  std::map<std::string_view, size_t> of_tenant, of_pool;
  std::map<std::pair<std::string_view, uid_t>, size_t> of_user;
  for (const auto& [id, entry] : held_) {
    const std::string_view pool = entry.attach.pool;
    ++of_tenant[TenantOf(pool)];
    ++of_pool[pool];
    ++of_user[{pool, entry.attach.peer.uid}];
  }
  using Rank = std::tuple<size_t, size_t, size_t, bool>;
  const auto rank = [&](const HeldAttach& attach) {
    const std::string_view pool = attach.pool;
    return Rank{of_tenant[TenantOf(pool)], of_pool[pool], of_user[{pool, attach.peer.uid}],
                !attach.greeted};
  };
  // The first of equals is the oldest.
  const auto excess = std::ranges::max_element(
      held_, {}, [&](const auto& entry) { return rank(entry.second.attach); });
  return excess->first;
}

uint64_t HeldAttaches::Add(HeldAttach attach, TimePoint now) {
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
