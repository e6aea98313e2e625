// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/reserve/refill_timer.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <utility>

namespace rocegw::session {

void RefillTimer::Begin(std::function<void()> refill) {
  if (timer_.valid()) return;
  refill_ = std::move(refill);
  timer_.Reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  watch_ = loop_.Watch(timer_.get(), EPOLLIN, [this](uint32_t) { OnTimer(); });
}

void RefillTimer::Arm(Duration after) {
  if (armed_ || !timer_.valid()) return;
  armed_ = true;
  itimerspec when{};
  when.it_value.tv_sec = after.ns / 1000000000;
  when.it_value.tv_nsec = after.ns % 1000000000;
  (void)::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void RefillTimer::OnTimer() {
  uint64_t expirations = 0;
  (void)!::read(timer_.get(), &expirations, sizeof expirations);
  armed_ = false;
  refill_();
}

}  // namespace rocegw::session
