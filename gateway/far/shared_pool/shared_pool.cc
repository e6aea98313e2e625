// SPDX-License-Identifier: Apache-2.0
// Requests of a shared block pool; links.cc has its donors.
#include "gateway/far/shared_pool/shared_pool.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rocegw::far {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(2);

// Completions name their attempt: generation, slot and number.
uint64_t IdOf(uint32_t generation, uint32_t slot, uint32_t number) {
  return uint64_t{generation} << 32 | slot << 8 | number;
}

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

int SharedPool::Put(std::string_view key, const void* value, uint64_t length,
                    rocegw_memory_blocks_done done, void* argument) {
  if (length == 0 || length > block_bytes_) return -EINVAL;
  return Begin(Kind::kPut, key, value, nullptr, length, done, argument);
}

int SharedPool::Get(std::string_view key, void* buffer, uint64_t size,
                    rocegw_memory_blocks_done done, void* argument) {
  return Begin(Kind::kGet, key, nullptr, buffer, size, done, argument);
}

int SharedPool::Has(std::string_view key) {
  return static_cast<int>(Wait([&](rocegw_memory_blocks_done done, void* argument) {
    return Begin(Kind::kFind, key, nullptr, nullptr, 0, done, argument);
  }));
}

int SharedPool::Remove(std::string_view key) {
  return static_cast<int>(Wait([&](rocegw_memory_blocks_done done, void* argument) {
    return Begin(Kind::kRemove, key, nullptr, nullptr, 0, done, argument);
  }));
}

void SharedPool::WaitForRoom() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kLookAgain, [this] { return !free_slots_.empty(); });
}

rocegw_memory_blocks_statistics SharedPool::Statistics() {
  const std::lock_guard lock(mutex_);
  rocegw_memory_blocks_statistics statistics = counts_;
  for (const Link& link : links_) {
    if (link.state != LinkState::kUp) continue;
    statistics.blocks += link.path->grant().shape.blocks();
    statistics.donors_up++;
    statistics.donors_by_endpoint += link.path->is_endpoint() ? 1 : 0;
  }
  return statistics;
}

int SharedPool::Begin(Kind kind, std::string_view key, const void* value, void* buffer,
                      uint64_t bytes, rocegw_memory_blocks_done done, void* argument) {
  const KeyHash hash = secret_.HashKey(BytesOf(key));
  const Members members = [this] {
    const std::lock_guard lock(mutex_);
    return LiveMembers();
  }();
  if (members.empty()) return -EIO;
  std::vector<uint32_t> donors;
  for (const Member& owner : OwnersOf(hash, members)) donors.push_back(owner.link);
  return BeginAt(kind, hash, std::move(donors), value, buffer, bytes, done, argument);
}

int SharedPool::BeginAt(Kind kind, const KeyHash& hash, std::vector<uint32_t> donors,
                        const void* value, void* buffer, uint64_t bytes,
                        rocegw_memory_blocks_done done, void* argument) {
  uint32_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (free_slots_.empty()) return -EAGAIN;
    number = free_slots_.back();
    free_slots_.pop_back();
    counts_.in_flight++;
  }
  Slot& slot = slots_[number];
  slot.kind = kind;
  slot.key = hash;
  slot.buffer = buffer;
  slot.bytes = bytes;
  slot.done = done;
  slot.argument = argument;
  slot.next_donor = 1;
  slot.lost = 0;
  slot.busy = 0;
  slot.best = 0;
  if (kind == Kind::kPut || kind == Kind::kRestore) {
    std::memcpy(slot.value, value, bytes);
    slot.value_hash = secret_.HashValue(slot.value, bytes);
  }
  const bool all = kind == Kind::kPut || kind == Kind::kRemove;
  slot.running = all ? static_cast<uint32_t>(donors.size()) : 1;
  const uint32_t attempts = slot.running;
  slot.donors = donors;
  for (uint32_t each = 0; each < attempts; each++) StartAttempt({number, each}, donors[each]);
  return 0;
}

void SharedPool::StartAttempt(AttemptId id, uint32_t link) {
  Slot& slot = slots_[id.slot];
  Attempt& attempt = slot.attempts[id.number];
  StepBuffers& buffers = *slot.buffers[id.number];
  {
    const std::lock_guard lock(mutex_);
    attempt.link = link;
    attempt.epoch = links_[link].epoch;
    attempt.failed = links_[link].state != LinkState::kUp;
    if (!attempt.failed) {
      const TableShape& shape = links_[link].path->grant().shape;
      switch (slot.kind) {
        case Kind::kPut:
        case Kind::kRestore:
          attempt.steps = std::make_unique<PutSteps>(
              shape, slot.key, buffers, secret_, slot.value, static_cast<uint32_t>(slot.bytes),
              slot.value_hash, slot.kind == Kind::kRestore ? PutMode::kRestore : PutMode::kReplace);
          break;
        case Kind::kGet:
        case Kind::kFetch:
          attempt.steps = std::make_unique<GetSteps>(shape, slot.key, buffers, secret_, slot.value,
                                                     slot.bytes, slot.kind == Kind::kGet);
          break;
        case Kind::kScan:
          attempt.steps = std::make_unique<ScanSteps>(shape, slot.key, buffers,
                                                      *static_cast<Bucket*>(slot.buffer));
          break;
        case Kind::kFind:
          attempt.steps = std::make_unique<FindSteps>(shape, slot.key, buffers);
          break;
        case Kind::kRemove:
          attempt.steps = std::make_unique<RemoveSteps>(shape, slot.key, buffers);
          break;
      }
    }
  }
  Advance(id);
}

void SharedPool::AdvanceAll(const AttemptIds& ready) {
  for (const AttemptId id : ready) Advance(id);
}

void SharedPool::Advance(AttemptId id) {
  Attempt& attempt = AttemptOf(id);
  if (attempt.failed) return EndAttempt(id, -EIO);
  attempt.commands = attempt.steps->Next();
  if (attempt.commands.empty()) return EndAttempt(id, attempt.steps->result());
  AttemptIds ready;
  {
    const std::lock_guard lock(mutex_);
    attempt.generation++;
    attempt.posted = 0;
    attempt.since = Clock::now();
    const Link& link = links_[attempt.link];
    if (link.state != LinkState::kUp || link.epoch != attempt.epoch) {
      attempt.failed = true;
      ready.push_back(id);
    } else {
      PostLocked(id, ready);
    }
  }
  AdvanceAll(ready);
}

void SharedPool::PostLocked(AttemptId id, AttemptIds& ready) {
  Attempt& attempt = AttemptOf(id);
  Link& link = links_[attempt.link];
  while (attempt.posted < attempt.commands.size()) {
    const int error = link.path->Post(attempt.commands[attempt.posted],
                                      IdOf(attempt.generation, id.slot, id.number));
    if (error == ENOMEM && link.posted != 0) {
      attempt.waits = true;
      link.waiting.push_back(id);
      return;
    }
    if (error != 0) {
      attempt.failed = true;
      attempt.posted = attempt.commands.size();
      if (attempt.pending == 0) ready.push_back(id);
      return FailLocked(attempt.link, ready);
    }
    attempt.posted++;
    attempt.pending++;
    link.posted++;
  }
}

void SharedPool::OnCompletions(const ibv_wc* completions, size_t count) {
  AttemptIds ready;
  {
    const std::lock_guard lock(mutex_);
    for (size_t each = 0; each < count; each++) {
      const uint64_t name = completions[each].wr_id;
      const AttemptId id{static_cast<uint32_t>(name) >> 8, static_cast<uint32_t>(name & 0xff)};
      if (id.slot >= slots_.size() || id.number >= kMostReplicas) continue;
      Attempt& attempt = AttemptOf(id);
      // Completions of a queue pair may come after it was given up.
      if (attempt.generation != name >> 32 || attempt.pending == 0) continue;
      Link& link = links_[attempt.link];
      attempt.pending--;
      link.posted--;
      if (completions[each].status != IBV_WC_SUCCESS) {
        attempt.failed = true;
        FailLocked(attempt.link, ready);
      }
      if (attempt.pending == 0 && attempt.posted == attempt.commands.size()) ready.push_back(id);
      while (link.state == LinkState::kUp && !link.waiting.empty()) {
        const AttemptId next = link.waiting.front();
        link.waiting.pop_front();
        AttemptOf(next).waits = false;
        PostLocked(next, ready);
        if (AttemptOf(next).waits) break;
      }
    }
  }
  AdvanceAll(ready);
}

void SharedPool::EndAttempt(AttemptId id, int64_t result) {
  Slot& slot = slots_[id.slot];
  Attempt& attempt = AttemptOf(id);
  std::optional<uint32_t> next;
  {
    const std::lock_guard lock(mutex_);
    if (attempt.steps != nullptr) counts_.evictions += attempt.steps->evicted();
    attempt.steps.reset();
    attempt.commands = {};
    slot.lost += attempt.failed ? 1 : 0;
    slot.busy += result == -EBUSY ? 1 : 0;
    if (result > 0 || result == -EMSGSIZE) slot.best = result;
    slot.running--;
    const bool asks_one_by_one = slot.kind == Kind::kGet || slot.kind == Kind::kFind;
    if (asks_one_by_one && slot.best == 0 && slot.next_donor < slot.donors.size()) {
      next = slot.donors[slot.next_donor++];
      slot.running++;
    } else if (slot.running != 0) {
      return;
    }
  }
  if (next) return StartAttempt(id, *next);
  Finish(id.slot);
}

int64_t SharedPool::ResultOf(const Slot& slot) {
  if (slot.busy != 0 && slot.kind != Kind::kGet) return -EBUSY;
  if (slot.best != 0) return slot.kind == Kind::kRemove ? 0 : slot.best;
  if (slot.lost != 0) return -EIO;
  return slot.kind == Kind::kGet || slot.kind == Kind::kFetch ? -ENOENT : 0;
}

void SharedPool::Finish(uint32_t number) {
  Slot& slot = slots_[number];
  const int64_t result = ResultOf(slot);
  if ((slot.kind == Kind::kGet || slot.kind == Kind::kFetch) && result > 0) {
    std::memcpy(slot.buffer, slot.value, static_cast<size_t>(result));
  }
  const rocegw_memory_blocks_done done = slot.done;
  void* const argument = slot.argument;
  {
    const std::lock_guard lock(mutex_);
    if (slot.kind == Kind::kGet) {
      counts_.hits += result > 0 ? 1 : 0;
      counts_.misses += result == -ENOENT || result == -EIO ? 1 : 0;
      counts_.lost += result == -EIO ? 1 : 0;
    } else if (slot.kind == Kind::kPut) {
      counts_.puts += result > 0 ? 1 : 0;
    } else if (slot.kind == Kind::kRestore) {
      counts_.restored += result > 0 ? 1 : 0;
    }
    free_slots_.push_back(number);
  }
  done(argument, result);
  // The pool may be destroyed once the count is down and the lock is free.
  const std::lock_guard lock(mutex_);
  counts_.in_flight--;
  changed_.notify_all();
}

}  // namespace rocegw::far
