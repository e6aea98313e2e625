// SPDX-License-Identifier: Apache-2.0
// Thread that handles the completions of one completion queue by one of five policies. Adaptive
// polling (RDMAbox IV-B, algorithm 3) starts with an event, goes on while there are completions,
// and waits for the next event only after a number of empty looks, so that completions which come
// in packs with short gaps cost one wake-up.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::far {

enum class PollMode : uint8_t {
  kAdaptive,
  kBusy,        // never waits
  kEvent,       // takes a completion per look, waits when there is none
  kEventBatch,  // arms and takes a batch, waits when there is none
  kHybrid,      // polls while there are completions, waits at the first empty look
};

struct PollPolicy {
  PollMode mode = PollMode::kAdaptive;
  uint32_t most_completions = 16;  // taken by one look (MAX_POLL_WC)
  uint32_t retries = 120;          // empty looks before it waits (MAX_RETRY)
};

class Poller {
 public:
  // Called on the poller's thread with the completions of one look.
  using Handler = std::function<void(const ibv_wc* completions, size_t count)>;

  explicit Poller(PollPolicy policy) : policy_(policy) {}
  ~Poller() { Stop(); }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Makes the completion queue and starts the thread; also again after Stop, with another device.
  Status Start(ibv_context* context, int entries, Handler handler);
  // Ends the thread; queue pairs of the completion queue are destroyed before.
  void Stop();
  ibv_cq* cq() const { return cq_; }

  // Held while completions are taken and handled. Who holds it after a queue pair was destroyed
  // knows that none of its completions will be handled any more.
  std::mutex& quiet() { return quiet_; }

  uint64_t looks() const { return looks_; }
  uint64_t wakeups() const { return wakeups_; }
  uint64_t completions() const { return completions_; }
  uint64_t cpu_nanoseconds() const { return cpu_nanoseconds_; }

 private:
  void Run();
  int Look();
  void WaitForEvent();

  const PollPolicy policy_;
  Handler handler_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  UniqueFd stop_fd_;
  std::atomic<bool> stop_{false};
  std::mutex quiet_;
  std::atomic<uint64_t> looks_{0};
  std::atomic<uint64_t> wakeups_{0};
  std::atomic<uint64_t> completions_{0};
  std::atomic<uint64_t> cpu_nanoseconds_{0};
  std::thread thread_;
};

}  // namespace rocegw::far
