// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/queues/shared_receives.h"

#include "gateway/shm/untrusted.h"

namespace rocegw::transport {

SharedReceives::SharedReceives(const verbs::SrqConfig& config)
    : config_(config),
      order_(&config.control->producer, &released_, config.order, config.entries, sizeof(uint32_t)),
      limit_(config.limit) {}

SharedReceives::Look SharedReceives::Check() {
  if (!returned_.empty()) {
    next_ = returned_.back();
    return Look::kReady;
  }
  const Look look = order_.Check();
  if (look != Look::kReady) return look;
  shm::CopyOut(&next_, order_.Slot(), sizeof next_);
  return next_ < config_.entries ? Look::kReady : Look::kFault;
}

uint32_t SharedReceives::Fetch() {
  ++taken_;
  if (!returned_.empty()) {
    returned_.pop_back();
  } else {
    order_.Release(order_.Fetch() + 1);
  }
  return next_;
}

void SharedReceives::Grow(uint32_t entries, const uint8_t* order, const uint8_t* slots) {
  config_.entries = entries;
  config_.order = order;
  config_.slots = slots;
  order_ = shm::WorkQueue(&config_.control->producer, &released_, order, entries, sizeof(uint32_t),
                          order_.fetched());
}

bool SharedReceives::TakeLimitEvent() {
  if (limit_ == 0 || waiting() >= limit_) return false;
  limit_ = 0;
  ++limit_events_;
  return true;
}

}  // namespace rocegw::transport
