// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/heap_return.h"

#include <malloc.h>

#include <algorithm>

namespace rocegw::session {
namespace {

constexpr Duration kSettles = Milliseconds(500);  // time until workers have destroyed their part
constexpr Duration kLeastBetween = Seconds(5);

// Returns the free bytes of all arenas, including those that malloc_trim returned.
size_t FreeBytes() { return ::mallinfo2().fordblks; }

}  // namespace

void HeapReturn::Destroyed(uint64_t objects) {
  destroyed_ += objects;
  const uint64_t charged = charged_();
  most_charged_ = std::max(most_charged_, charged);
  const bool many = destroyed_ >= kManyObjects || most_charged_ - charged >= kKeptBytes;
  if (!many) return;
  looks_again_ = false;
  if (timer_ != 0) return;
  const TimePoint at = std::max(ControlLoop::Now() + kSettles, looked_at_ + kLeastBetween);
  timer_ = loop_.At(at, [this] { Look(); });
}

void HeapReturn::Look() {
  timer_ = 0;
  destroyed_ = 0;
  most_charged_ = charged_();
  looked_at_ = ControlLoop::Now();
  const bool again = std::exchange(looks_again_, false);
  const size_t free = FreeBytes();
  const size_t other = std::max(free, free_then_) - std::min(free, free_then_);
  if (free < kKeptBytes || (again && other < kWorthBytes)) return;
  free_then_ = free;
  looks_again_ = true;
  ++count_;
  (void)::malloc_trim(kKeptBytes);
  // Workers may not have destroyed their part yet, of which nothing reports the end.
  timer_ = loop_.At(looked_at_ + kLeastBetween, [this] { Look(); });
}

}  // namespace rocegw::session
