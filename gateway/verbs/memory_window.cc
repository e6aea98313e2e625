// SPDX-License-Identifier: Apache-2.0
#include "gateway/verbs/memory_window.h"

#include "gateway/verbs/qp_config.h"

namespace rocegw::verbs {
namespace {

constexpr uint32_t kRemoteAccess = kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;
// Access flags that are accepted without effect: programs set local write as for regions, and other
// providers accept it.
constexpr uint32_t kIgnoredAccess = kAccessLocalWrite;
constexpr uint32_t kTagMask = 0xFF;

}  // namespace

// Lock that sleeps while it is taken, because its holder may have been preempted.
class MemoryWindow::Guard {
 public:
  explicit Guard(std::atomic<bool>& taken) : taken_(taken) {
    while (taken_.exchange(true, std::memory_order_acquire))
      taken_.wait(true, std::memory_order_relaxed);
  }
  ~Guard() {
    taken_.store(false, std::memory_order_release);
    taken_.notify_one();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  std::atomic<bool>& taken_;
};

bool BoundWindows::Enter() {
  uint32_t count = count_.load(std::memory_order_relaxed);
  do {
    if (count == kClosed) return false;
  } while (!count_.compare_exchange_weak(count, count + 1, std::memory_order_acquire));
  return true;
}

bool BoundWindows::Close() {
  uint32_t none = 0;
  return count_.compare_exchange_strong(none, kClosed, std::memory_order_acquire) ||
         none == kClosed;
}

uint32_t BoundWindows::count() const {
  const uint32_t count = count_.load(std::memory_order_relaxed);
  return count == kClosed ? 0 : count;
}

void MemoryWindow::Leave() {
  if (bound_ != nullptr) bound_->Leave();
  bound_ = nullptr;
}

bool MemoryWindow::Bind(const RemoteUser& user, const BindRequest& request,
                        const RegionConfig* region) {
  if (user.session != session_ || user.pd != pd_) return false;
  if ((request.access & ~(kRemoteAccess | kAccessZeroBased | kIgnoredAccess)) != 0) return false;
  const bool zero_based = (request.access & kAccessZeroBased) != 0;
  if (type_ == MwType::kType1 ? zero_based : request.length == 0) return false;
  if (request.length != 0) {
    if (region == nullptr || region->session != session_ || region->pd != pd_ ||
        region->windows == nullptr || !region->Holds(request.address, request.length)) {
      return false;
    }
    // Remote write or atomic access requires local write access to the region (IBTA C10-74).
    const bool changes = (request.access & (kAccessRemoteWrite | kAccessRemoteAtomic)) != 0;
    if (changes && (region->access & kAccessLocalWrite) == 0) return false;
  }
  const Guard guard(taken_);
  if (key_ != request.before) return false;
  // A type 2 window must be invalidated before it is bound again.
  if (type_ == MwType::kType2 && bound_ != nullptr) return false;
  if (request.length != 0 && !region->windows->Enter()) return false;
  Leave();
  key_ = MemoryKey{(key_.value & ~kTagMask) | (request.key.value & kTagMask)};
  region_ = request.region;
  bound_ = request.length != 0 ? region->windows : nullptr;
  access_ = request.access;
  address_ = request.address;
  length_ = request.length;
  qpn_ = user.qpn;
  qp_ = user.qp;
  return true;
}

bool MemoryWindow::IsUsers(const RemoteUser& user, MemoryKey key) const {
  if (bound_ == nullptr || key_ != key || user.session != session_ || user.pd != pd_) return false;
  return type_ == MwType::kType1 || (user.qpn == qpn_ && user.qp == qp_);
}

bool MemoryWindow::Invalidate(const RemoteUser& user, MemoryKey key) {
  const Guard guard(taken_);
  if (type_ != MwType::kType2 || !IsUsers(user, key)) return false;
  Leave();
  return true;
}

bool MemoryWindow::Find(const RemoteUser& user, MemoryKey key, uint32_t access, uint64_t va,
                        uint64_t length, Place& place) const {
  const Guard guard(taken_);
  if (!IsUsers(user, key) || (access_ & access) != access) return false;
  const uint64_t first = (access_ & kAccessZeroBased) != 0 ? 0 : address_;
  if (va < first) return false;
  const uint64_t offset = va - first;
  if (offset > length_ || length > length_ - offset) return false;
  place = {region_, address_ + offset};
  return true;
}

std::optional<MemoryWindow::Binding> MemoryWindow::binding() const {
  const Guard guard(taken_);
  if (bound_ == nullptr) return std::nullopt;
  return Binding{key_, region_, access_, address_, length_, qpn_};
}

void MemoryWindow::Unbind() {
  const Guard guard(taken_);
  Leave();
}

}  // namespace rocegw::verbs
