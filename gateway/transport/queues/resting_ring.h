// SPDX-License-Identifier: Apache-2.0
// Queue that holds no memory while it is empty, so that an idle queue pair pays for one pointer
// only. Otherwise like growing_ring.h. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "gateway/base/containers/growing_ring.h"

namespace rocegw::transport {

template <typename T>
class RestingRing {
 public:
  bool empty() const { return ring_ == nullptr; }
  size_t size() const { return ring_ == nullptr ? 0 : ring_->size(); }
  // These four require a queue that is not empty.
  T& front() { return ring_->front(); }
  T& back() { return ring_->back(); }
  T& operator[](size_t i) { return (*ring_)[i]; }
  const T& operator[](size_t i) const { return (*ring_)[i]; }

  void push_back(T value) {
    if (ring_ == nullptr) ring_ = std::make_unique<GrowingRing<T>>();
    ring_->push_back(std::move(value));
  }
  void pop_front() {
    ring_->pop_front();
    if (ring_->empty()) ring_.reset();
  }
  void pop_back() {
    ring_->pop_back();
    if (ring_->empty()) ring_.reset();
  }
  void clear() { ring_.reset(); }

 private:
  std::unique_ptr<GrowingRing<T>> ring_;
};

}  // namespace rocegw::transport
