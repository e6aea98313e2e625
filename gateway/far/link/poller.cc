// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/link/poller.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace rocegw::far {
namespace {

constexpr uint32_t kMostCompletions = 64;
constexpr uint32_t kLooksBetweenYields = 64;

uint64_t ThreadCpuNanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

Status Poller::Start(ibv_context* context, int entries, Handler handler) {
  handler_ = std::move(handler);
  channel_ = ibv_create_comp_channel(context);
  if (channel_ == nullptr) return {errno, std::string("no event channel: ") + strerror(errno)};
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  cq_ = ibv_create_cq(context, entries, nullptr, channel_, 0);
  if (cq_ == nullptr) return {errno, std::string("no completion queue: ") + strerror(errno)};
  stop_fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_ = false;
  thread_ = std::thread([this] { Run(); });
  return OkStatus();
}

void Poller::Stop() {
  if (thread_.joinable()) {
    stop_ = true;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_fd_.get(), &one, sizeof one);
    thread_.join();
  }
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
  cq_ = nullptr;
  channel_ = nullptr;
}

int Poller::Look() {
  std::array<ibv_wc, kMostCompletions> taken;
  const uint32_t most = policy_.mode == PollMode::kEvent
                            ? 1
                            : std::clamp(policy_.most_completions, 1u, kMostCompletions);
  const std::lock_guard lock(quiet_);
  const int count = ibv_poll_cq(cq_, static_cast<int>(most), taken.data());
  looks_.fetch_add(1, std::memory_order_relaxed);
  if (count <= 0) return 0;
  completions_.fetch_add(static_cast<uint64_t>(count), std::memory_order_relaxed);
  handler_(taken.data(), static_cast<size_t>(count));
  return count;
}

void Poller::WaitForEvent() {
  cpu_nanoseconds_ = ThreadCpuNanoseconds();
  std::array<pollfd, 2> ready{{{channel_->fd, POLLIN, 0}, {stop_fd_.get(), POLLIN, 0}}};
  poll(ready.data(), ready.size(), -1);
  ibv_cq* cq = nullptr;
  void* argument = nullptr;
  if (ibv_get_cq_event(channel_, &cq, &argument) == 0) {
    ibv_ack_cq_events(cq, 1);
    wakeups_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Poller::Run() {
  pthread_setname_np(pthread_self(), "rocegw-far-poll");
  const uint32_t retries = policy_.mode == PollMode::kAdaptive ? policy_.retries : 0;
  uint32_t empty = 0;
  bool armed = false;
  while (!stop_) {
    if (Look() > 0) {
      empty = 0;
      if (policy_.mode == PollMode::kEventBatch && !armed) {
        ibv_req_notify_cq(cq_, 0);
        armed = true;
      }
      continue;
    }
    empty++;
    if (policy_.mode == PollMode::kBusy) {
      if (empty % kLooksBetweenYields == 0) {
        sched_yield();
        cpu_nanoseconds_ = ThreadCpuNanoseconds();
      }
      continue;
    }
    if (empty <= retries) continue;
    if (!armed) {
      // A completion between the last look and this call raises no event: look once more.
      ibv_req_notify_cq(cq_, 0);
      armed = true;
      continue;
    }
    WaitForEvent();
    armed = false;
    empty = 0;
  }
  cpu_nanoseconds_ = ThreadCpuNanoseconds();
}

}  // namespace rocegw::far
