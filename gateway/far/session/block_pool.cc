// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/block_pool.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace rocegw::far {
namespace {

constexpr uint64_t kPage = Slab::kPageBytes;
// A put or get that found no room looks again when a request ends, or after this time: room of the
// session's queue is not reported here.
constexpr auto kLookAgain = std::chrono::milliseconds(2);

}  // namespace

struct BlockPool::Request {
  BlockPool* pool = nullptr;
  Direction direction = Direction::kRead;
  std::string key;
  uint32_t block = 0;
  uint64_t bytes = 0;
  rocegw_memory_blocks_done done = nullptr;
  void* argument = nullptr;
  std::atomic<uint32_t> pending{0};
  std::atomic<int> status{0};
  // End of a value that does not end with a page. Whole pages are written: a page that was lost is
  // good again then.
  uint8_t tail[kPage];
};

BlockPool::BlockPool(Dispatcher& dispatcher, uint64_t offset, uint64_t size, uint64_t block_bytes)
    : dispatcher_(dispatcher),
      offset_(offset),
      block_bytes_(block_bytes),
      index_(static_cast<uint32_t>(size / block_bytes)) {
  counts_.blocks = size / block_bytes;
}

BlockPool::~BlockPool() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return counts_.in_flight == 0; });
}

int BlockPool::Put(std::string_view key, const void* value, uint64_t length,
                   rocegw_memory_blocks_done done, void* argument) {
  if (length == 0 || length > block_bytes_) return -EINVAL;
  auto request = std::make_unique<Request>();
  {
    const std::lock_guard lock(mutex_);
    const auto block = index_.Take();
    if (!block) return -EAGAIN;
    request->block = *block;
    counts_.in_flight++;
  }
  request->pool = this;
  request->direction = Direction::kWrite;
  request->key = key;
  request->bytes = length;
  request->done = done;
  request->argument = argument;
  return Start(request.release(), WrittenBytes(value));
}

int BlockPool::Get(std::string_view key, void* buffer, uint64_t size,
                   rocegw_memory_blocks_done done, void* argument) {
  auto request = std::make_unique<Request>();
  {
    const std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    const auto found = index_.Hold(key, size, &bytes);
    if (!found) {
      counts_.misses += bytes == 0;
      return bytes == 0 ? -ENOENT : -EMSGSIZE;
    }
    request->block = found->block;
    request->bytes = found->bytes;
    counts_.in_flight++;
  }
  request->pool = this;
  request->done = done;
  request->argument = argument;
  return Start(request.release(), static_cast<uint8_t*>(buffer));
}

// Submits the transfers of a request. When the first one is refused, the request is undone.
int BlockPool::Start(Request* request, uint8_t* buffer) {
  const uint64_t place = offset_ + request->block * block_bytes_;
  const bool is_put = request->direction == Direction::kWrite;
  const uint64_t tail = is_put ? request->bytes % kPage : 0;
  const uint64_t whole = request->bytes - tail;
  // The count is larger than that of the transfers by one: the request lives until the last line.
  request->pending.store(1 + (whole != 0) + (tail != 0));
  int error = 0;
  if (whole != 0) {
    error = dispatcher_.Submit(request->direction, place, buffer, whole, &OnPartDone, request);
  }
  if (tail != 0 && error == 0) {
    std::memcpy(request->tail, buffer + whole, tail);
    std::memset(request->tail + tail, 0, kPage - tail);
    error = dispatcher_.Submit(
        request->direction, place + whole, request->tail, kPage, &OnPartDone, request,
        whole != 0 ? Dispatcher::Limit::kContinued : Dispatcher::Limit::kApplies);
    if (error != 0 && whole != 0) {
      // The first transfer is under way: the request ends with it, and with an error.
      OnPartDone(request, error);
      error = 0;
    }
  }
  if (error == 0) {
    OnPartDone(request, 0);
    return 0;
  }
  {
    const std::lock_guard lock(mutex_);
    counts_.in_flight--;
    if (is_put) {
      index_.Discard(request->block);
    } else {
      index_.Release(request->block);
    }
    changed_.notify_all();
  }
  delete request;
  return error;
}

void BlockPool::OnPartDone(void* argument, int status) {
  auto* request = static_cast<Request*>(argument);
  if (status != 0) request->status.store(status);
  if (request->pending.fetch_sub(1) == 1) request->pool->Finish(request);
}

void BlockPool::Finish(Request* request) {
  const std::unique_ptr<Request> owned(request);
  const int status = request->status.load();
  {
    const std::lock_guard lock(mutex_);
    if (request->direction == Direction::kRead) {
      if (status == 0) {
        counts_.hits++;
      } else {
        counts_.misses++;
        // Another get may have found the loss before.
        counts_.lost += index_.Lose(request->block);
      }
      index_.Release(request->block);
    } else if (status == 0) {
      counts_.puts++;
      index_.Publish(std::move(request->key), request->block, request->bytes);
    } else {
      index_.Discard(request->block);
    }
  }
  request->done(request->argument, status != 0 ? status : static_cast<int64_t>(request->bytes));
  // The pool may be destroyed once the count is down and the lock is free.
  const std::lock_guard lock(mutex_);
  counts_.in_flight--;
  changed_.notify_all();
}

void BlockPool::WaitForRoom() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kLookAgain);
}

int BlockPool::Has(std::string_view key) {
  const std::lock_guard lock(mutex_);
  return index_.Has(key) ? 1 : 0;
}

int BlockPool::Remove(std::string_view key) {
  const std::lock_guard lock(mutex_);
  return index_.Remove(key) ? 0 : -ENOENT;
}

rocegw_memory_blocks_statistics BlockPool::Statistics() {
  const std::lock_guard lock(mutex_);
  rocegw_memory_blocks_statistics statistics = counts_;
  statistics.values = index_.values();
  statistics.evictions = index_.evictions();
  return statistics;
}

}  // namespace rocegw::far
