// SPDX-License-Identifier: Apache-2.0
// Restores the number of replicas of a shared block pool after a donor was lost, or came back
// empty. Each member does that for all values, one value after the other: it looks first whether
// another member was faster. A restored value is older than any that is put (pool/steps.h), makes
// no room for itself, and comes only from a donor that the key has belonged to all the time.
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "gateway/base/mix.h"
#include "gateway/far/shared_pool/shared_pool.h"

namespace rocegw::far {
namespace {

// Donors may come and go within this time before values are copied; a process that has just joined
// leaves the work to those that saw the loss. Members begin at different times.
constexpr auto kSettle = std::chrono::milliseconds(1000);
constexpr auto kSettleAtStart = std::chrono::milliseconds(10000);
constexpr uint32_t kSpreadMilliseconds = 500;
constexpr auto kTryAgain = std::chrono::milliseconds(1000);

}  // namespace

SharedPool::Members SharedPool::LiveMembers() const {
  Members members;
  for (uint32_t number = 0; number < links_.size(); number++) {
    const Link& link = links_[number];
    if (link.state == LinkState::kUp && !link.leaving_since)
      members.push_back({number, link.epoch, link.identity});
  }
  return members;
}

// Rendezvous hashing: when a donor is lost, only its keys move.
std::vector<SharedPool::Member> SharedPool::OwnersOf(const KeyHash& key, Members members) const {
  const auto score = [&key](const Member& member) { return Mix(key.first ^ member.identity); };
  const size_t wanted = std::min<size_t>(settings_.replicas, members.size());
  std::partial_sort(
      members.begin(), members.begin() + static_cast<ptrdiff_t>(wanted), members.end(),
      [&](const Member& one, const Member& other) { return score(one) > score(other); });
  members.resize(wanted);
  return members;
}

void SharedPool::RestoreReplicas() {
  pthread_setname_np(pthread_self(), "rocegw-far-heal");
  std::minstd_rand random(std::random_device{}());
  Members whole;  // all values have their replicas at these
  auto pause = kSettleAtStart;
  std::unique_lock lock(mutex_);
  Members members = LiveMembers();
  while (!stop_restoring_) {
    const auto spread = std::chrono::milliseconds(random() % kSpreadMilliseconds);
    const bool changed = changed_.wait_for(
        lock, pause + spread, [&] { return stop_restoring_ || LiveMembers() != members; });
    pause = kSettle;
    if (changed) {
      members = LiveMembers();
      continue;
    }
    if (members == whole || members.size() < 2 || settings_.replicas < 2) {
      changed_.wait(lock, [&] { return stop_restoring_ || LiveMembers() != members; });
      continue;
    }
    counts_.restoring = 1;
    lock.unlock();
    const bool complete = RestoreAll(members, whole);
    lock.lock();
    counts_.restoring = 0;
    if (complete) whole = members;
    if (!complete) pause = kTryAgain;
  }
}

bool SharedPool::MayRestore(const Members& members) {
  const std::lock_guard lock(mutex_);
  return !stop_restoring_ && LiveMembers() == members;
}

// Returns whether all values have their replicas at the members.
bool SharedPool::RestoreAll(const Members& members, const Members& whole) {
  std::vector<uint8_t> value(block_bytes_);
  bool complete = true;
  for (const Member& source : members) {
    const uint64_t buckets = [&] {
      const std::lock_guard lock(mutex_);
      const Link& link = links_[source.link];
      return link.state == LinkState::kUp ? link.path->grant().shape.buckets : 0;
    }();
    for (uint64_t number = 0; number < buckets; number++) {
      if (!MayRestore(members)) return false;
      Bucket bucket;
      // A key of that bucket: scanning a bucket needs no more of it.
      const int64_t scanned = RunAt(Kind::kScan, {0, number}, source.link, nullptr,
                                    reinterpret_cast<uint8_t*>(&bucket), sizeof bucket);
      if (scanned != 1) return false;
      for (const Entry& entry : bucket) {
        if (!Holds(entry, entry.key)) continue;
        complete = RestoreValue(entry.key, source, members, whole, value) && complete;
      }
    }
  }
  return complete;
}

// Restores a value that the source has. Returns false when that is to be tried again.
bool SharedPool::RestoreValue(const KeyHash& key, const Member& source, const Members& members,
                              const Members& whole, std::vector<uint8_t>& value) {
  const auto owners = OwnersOf(key, members);
  const auto before = OwnersOf(key, whole);
  const auto has = [](const Members& list, const Member& member) {
    return std::find(list.begin(), list.end(), member) != list.end();
  };
  // A donor that the key had left may have an older value.
  if (!has(owners, source) || (!whole.empty() && !has(before, source))) return true;
  int64_t bytes = 0;
  for (const Member& owner : owners) {
    if (owner == source || has(before, owner)) continue;
    const int64_t found = RunAt(Kind::kFind, key, owner.link, nullptr, nullptr, 0);
    if (found < 0) return false;
    if (found == 1) continue;
    if (bytes == 0) {
      bytes = RunAt(Kind::kFetch, key, source.link, nullptr, value.data(), value.size());
    }
    if (bytes == -ENOENT) return true;  // the value was removed or evicted meanwhile
    if (bytes < 0) return false;
    const int64_t put =
        RunAt(Kind::kRestore, key, owner.link, value.data(), nullptr, static_cast<uint64_t>(bytes));
    if (put < 0) return false;
    // A removal may have passed the copy.
    if (put > 0 && RunAt(Kind::kFind, key, source.link, nullptr, nullptr, 0) == 0) {
      RunAt(Kind::kRemove, key, owner.link, nullptr, nullptr, 0);
    }
  }
  return true;
}

int64_t SharedPool::RunAt(Kind kind, const KeyHash& key, uint32_t link, const uint8_t* value,
                          uint8_t* buffer, uint64_t bytes) {
  return Wait([&](rocegw_memory_blocks_done done, void* argument) {
    return BeginAt(kind, key, {link}, value, buffer, bytes, done, argument);
  });
}

}  // namespace rocegw::far
