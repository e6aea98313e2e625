// SPDX-License-Identifier: Apache-2.0
// Frames of a port's queue that are complete and not sent yet, in order. Bounded, and nothing is
// allocated after the construction. Belongs to the queue's worker.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace rocegw::port {

// Frame: the driver's description of a frame, or of a piece of one.
template <typename Frame>
class ReadyFrames {
 public:
  explicit ReadyFrames(size_t most) : most_(most) { frames_.reserve(most); }

  size_t size() const { return frames_.size() - head_; }
  bool empty() const { return size() == 0; }
  // Returns the frames, the earliest first; valid until the next call of another function.
  std::span<Frame> frames() { return std::span(frames_).subspan(head_); }

  // Returns true if `count` more frames fit. If they do not, calls `send` first, which may call
  // Sent.
  template <typename Send>
  bool MakeRoom(size_t count, Send send) {
    if (frames_.size() + count <= most_) return true;
    if (size() + count > most_) send();
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
    return frames_.size() + count <= most_;
  }
  // Adds a frame; MakeRoom has returned true for it.
  void Add(const Frame& frame) { frames_.push_back(frame); }
  // Removes the first frames, which were sent.
  void Sent(size_t count) {
    head_ += count;
    if (head_ != frames_.size()) return;
    frames_.clear();
    head_ = 0;
  }

 private:
  const size_t most_;
  std::vector<Frame> frames_;  // from head_ on: not sent
  size_t head_ = 0;
};

}  // namespace rocegw::port
