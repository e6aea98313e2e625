// SPDX-License-Identifier: Apache-2.0
// Objects of one kind of one session by handle. Handles are small numbers from 1 (0 means "none" in
// the attach protocol). A freed handle is reused late, so that a pending completion or event does
// not reach the next owner. Owns the objects. Control thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::session {

template <typename T>
class HandleTable {
 public:
  // Number of freed handles that stay unused before the first is reused.
  static constexpr size_t kResting = 64;

  uint32_t Add(std::unique_ptr<T> object) {
    ++size_;
    if (free_.size() > kResting) {
      const uint32_t handle = free_.front();
      free_.pop_front();
      slots_[handle - 1] = std::move(object);
      return handle;
    }
    slots_.push_back(std::move(object));
    return static_cast<uint32_t>(slots_.size());
  }

  // Allocates space for so many objects at a time.
  void Reserve(size_t count) {
    slots_.reserve(count + kResting);
    free_.Reserve(count + kResting);
  }

  // Returns nullptr for an unused handle.
  T* Find(uint32_t handle) const {
    return handle == 0 || handle > slots_.size() ? nullptr : slots_[handle - 1].get();
  }

  std::unique_ptr<T> Remove(uint32_t handle) {
    if (Find(handle) == nullptr) return nullptr;
    --size_;
    free_.push_back(handle);
    return std::move(slots_[handle - 1]);
  }

  size_t size() const { return size_; }

  // Hand-over to a gateway that takes over (gateway/hand_over): writes which handles are in use or
  // rest, or reads them into an empty table, with each(handle, object) for every object. `most`
  // limits the number of handles.
  template <typename F>
  void HandOver(hand_over::StateStream& state, uint32_t most, F&& each) {
    const uint32_t count = state.Count(slots_.size(), most);
    if (state.reading()) slots_.resize(count);
    for (uint32_t i = 0; i < count && state.ok(); ++i) {
      if (!state.Carry(slots_[i] != nullptr)) continue;
      if (state.reading()) {
        slots_[i] = std::make_unique<T>();
        ++size_;
      }
      each(i + 1, *slots_[i]);
    }
    std::vector<bool> rests(slots_.size());
    state.Ring(free_, most, [&](uint32_t& handle) {
      state(handle);
      const bool unused = handle != 0 && handle <= slots_.size() && !slots_[handle - 1];
      if (state.Require(unused && !rests[handle - 1], "resting handle is in use"))
        rests[handle - 1] = true;
    });
  }

  // Calls f(handle, object); f must not add or remove objects.
  template <typename F>
  void ForEach(F&& f) const {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i]) f(static_cast<uint32_t>(i + 1), *slots_[i]);
    }
  }

  // Returns the handles of the objects for which f(object) holds.
  template <typename F>
  std::vector<uint32_t> Select(F&& f) const {
    std::vector<uint32_t> handles;
    ForEach([&](uint32_t handle, const T& object) {
      if (f(object)) handles.push_back(handle);
    });
    return handles;
  }

 private:
  std::vector<std::unique_ptr<T>> slots_;
  GrowingRing<uint32_t> free_;
  size_t size_ = 0;
};

}  // namespace rocegw::session
