// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/copier.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "gateway/base/containers/spsc_ring.h"

namespace rocegw::memory {
namespace {

std::atomic<size_t> live_threads{0};

}  // namespace

void ExecuteBatch(MemorySpace& memory, Batch& batch) {
  std::span<MemoryOp> ops(batch.ops);
  batch.failed.clear();
  const bool grouped = batch.groups.size() == ops.size();
  std::vector<uint32_t> broken;  // groups with a fault: few
  const auto is_broken = [&](size_t i) {
    return !broken.empty() &&
           std::find(broken.begin(), broken.end(), batch.groups[i]) != broken.end();
  };
  size_t i = 0;
  while (i < ops.size()) {
    if (grouped && is_broken(i)) {
      batch.failed.push_back(static_cast<uint32_t>(i++));
      continue;
    }
    size_t end = ops.size();
    if (!broken.empty()) {
      for (end = i + 1; end < ops.size() && !is_broken(end);) ++end;
    }
    i += memory.Execute(ops.subspan(i, end - i), batch.counts);
    if (i == end) continue;
    if (grouped) broken.push_back(batch.groups[i]);
    batch.failed.push_back(static_cast<uint32_t>(i++));
  }
}

namespace {

class ThreadCopier final : public Copier {
 public:
  static StatusOr<std::unique_ptr<Copier>> Start(std::shared_ptr<MemorySpace> memory,
                                                 std::shared_ptr<void> keepalive, Options options);
  ~ThreadCopier() override { Stop(); }

  bool Submit(WorkerIndex worker, std::unique_ptr<Batch>& batch) override;
  std::unique_ptr<Batch> Collect(WorkerIndex worker) override;
  void Stop() override;

 private:
  struct Shared;
  explicit ThreadCopier(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void Run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

struct ThreadCopier::Shared {
  struct WorkerRings {
    explicit WorkerRings(size_t depth) : submitted(depth), done(depth) {}
    SpscRing<std::unique_ptr<Batch>> submitted;
    SpscRing<std::unique_ptr<Batch>> done;
    size_t out = 0;  // worker's: submitted and not collected
  };

  std::shared_ptr<MemorySpace> memory;
  std::shared_ptr<void> keepalive;
  Options options;
  std::vector<std::unique_ptr<WorkerRings>> workers;
  std::atomic<uint32_t> bell{0};  // counts submissions; the thread waits on it
  std::atomic<bool> stop{false};
  // Held while a batch is returned to its worker, never while client memory is touched: after Stop,
  // no ring and no descriptor of a worker is used any more.
  std::mutex giving_back;
};

void ThreadCopier::Run(const std::shared_ptr<Shared>& shared) {
  while (true) {
    const uint32_t heard = shared->bell.load(std::memory_order_acquire);
    bool worked = false;
    for (size_t w = 0; w < shared->workers.size(); ++w) {
      if (shared->stop.load(std::memory_order_acquire)) return;
      std::unique_ptr<Batch> batch;
      if (!shared->workers[w]->submitted.Pop(batch)) continue;
      worked = true;
      ExecuteBatch(*shared->memory, *batch);
      const std::lock_guard<std::mutex> lock(shared->giving_back);
      if (shared->stop.load(std::memory_order_acquire)) return;
      shared->workers[w]->done.Push(std::move(batch));
      if (w < shared->options.wake_fds.size()) {
        const uint64_t one = 1;
        (void)!::write(shared->options.wake_fds[w], &one, sizeof one);
      }
    }
    if (shared->stop.load(std::memory_order_acquire)) return;
    if (!worked) shared->bell.wait(heard, std::memory_order_acquire);
  }
}

StatusOr<std::unique_ptr<Copier>> ThreadCopier::Start(std::shared_ptr<MemorySpace> memory,
                                                      std::shared_ptr<void> keepalive,
                                                      Options options) {
  auto shared = std::make_shared<Shared>();
  shared->memory = std::move(memory);
  shared->keepalive = std::move(keepalive);
  shared->options = std::move(options);
  for (size_t w = 0; w < shared->options.workers; ++w) {
    shared->workers.push_back(std::make_unique<Shared::WorkerRings>(shared->options.depth));
  }
  // pthread_create instead of std::thread, because failure is a result here, not an exception.
  auto* const argument = new std::shared_ptr<Shared>(shared);
  live_threads.fetch_add(1, std::memory_order_relaxed);
  pthread_t thread{};
  const int error = ::pthread_create(
      &thread, nullptr,
      [](void* raw) -> void* {
        {
          const std::unique_ptr<std::shared_ptr<Shared>> owned(
              static_cast<std::shared_ptr<Shared>*>(raw));
          Run(*owned);
        }
        live_threads.fetch_sub(1, std::memory_order_release);
        return nullptr;
      },
      argument);
  if (error != 0) {
    live_threads.fetch_sub(1, std::memory_order_relaxed);
    delete argument;
    return Status(error, std::string("copier thread: ") + std::strerror(error));
  }
  ::pthread_setname_np(thread, "rocegw-copier");
  ::pthread_detach(thread);
  return std::unique_ptr<Copier>(new ThreadCopier(std::move(shared)));
}

bool ThreadCopier::Submit(WorkerIndex worker, std::unique_ptr<Batch>& batch) {
  Shared::WorkerRings& rings = *shared_->workers[worker];
  if (rings.out == shared_->options.depth) return false;
  // Cannot fail: the ring holds at least `depth`.
  if (!rings.submitted.Push(std::move(batch))) return false;
  ++rings.out;
  shared_->bell.fetch_add(1, std::memory_order_release);
  shared_->bell.notify_one();
  return true;
}

std::unique_ptr<Batch> ThreadCopier::Collect(WorkerIndex worker) {
  Shared::WorkerRings& rings = *shared_->workers[worker];
  std::unique_ptr<Batch> batch;
  if (rings.done.Pop(batch)) --rings.out;
  return batch;
}

void ThreadCopier::Stop() {
  {
    const std::lock_guard<std::mutex> lock(shared_->giving_back);
    shared_->stop.store(true, std::memory_order_release);
  }
  shared_->bell.fetch_add(1, std::memory_order_release);
  shared_->bell.notify_one();
}

}  // namespace

StatusOr<std::unique_ptr<Copier>> Copier::Start(std::shared_ptr<MemorySpace> memory,
                                                std::shared_ptr<void> keepalive, Options options) {
  return ThreadCopier::Start(std::move(memory), std::move(keepalive), std::move(options));
}

size_t Copier::LiveThreads() { return live_threads.load(std::memory_order_acquire); }

}  // namespace rocegw::memory
