// SPDX-License-Identifier: Apache-2.0
// System calls on objects of a program that may block as long as the program likes: close() of a
// TCP socket that lingers or of a FUSE file, statfs() of a FUSE file. The control thread never
// makes them; it gives them to the lane of the program. Calls of one lane run one after the other,
// on a thread that other lanes do not wait for, so that a program can stop its own calls alone.
// There are at most as many such threads as lanes with calls; the owner of a lane counts what the
// lane holds against the session or the pool (attach_server.h).
//
// The threads own what they use and outlive everything else: a blocked thread ends with its call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/base/unique_fd.h"

namespace rocegw::session {

class ClientLane {
 public:
  static std::shared_ptr<ClientLane> Make();
  virtual ~ClientLane() = default;
  ClientLane(const ClientLane&) = delete;
  ClientLane& operator=(const ClientLane&) = delete;

  // Control thread. The call must own what it uses.
  virtual void Run(std::function<void()> call) = 0;
  void Close(UniqueFd descriptor);
  // Calls that have not returned. Any thread.
  virtual size_t held() const = 0;
  // The same of all lanes of the process.
  static size_t HeldByAll();

 protected:
  ClientLane() = default;
};

// A descriptor that a program passed, or a socket in which such descriptors may wait. Closed by the
// lane. Invalid without a lane. Movable.
class ClientFd {
 public:
  ClientFd() = default;
  ClientFd(UniqueFd descriptor, std::shared_ptr<ClientLane> lane)
      : descriptor_(std::move(descriptor)), lane_(std::move(lane)) {}
  ClientFd(ClientFd&& other) noexcept = default;
  ClientFd& operator=(ClientFd&& other) noexcept {
    if (this != &other) {
      Reset();
      descriptor_ = std::move(other.descriptor_);
      lane_ = std::move(other.lane_);
    }
    return *this;
  }
  ~ClientFd() { Reset(); }

  int get() const { return descriptor_.get(); }
  bool valid() const { return descriptor_.valid(); }
  const std::shared_ptr<ClientLane>& lane() const { return lane_; }
  // For a descriptor that was judged: to close it does not block.
  UniqueFd Release() { return std::move(descriptor_); }
  void Reset() {
    if (descriptor_.valid()) lane_->Close(std::move(descriptor_));
  }

 private:
  UniqueFd descriptor_;
  std::shared_ptr<ClientLane> lane_;
};

// How the control thread learns that calls of lanes have returned. Shared with the threads of
// lanes, which may outlive the loop: what runs on the control thread stays with the control thread.
class LaneReturns {
 public:
  LaneReturns();

  // Readable when a call has returned: TakeAll then.
  int fd() const { return wake_.get(); }
  // Control thread: runs `done` when the call of that number has returned. Yields the number.
  uint64_t Expect(std::function<void()> done);
  // Control thread: `done` is not run.
  void Abandon(uint64_t number) { expected_.erase(number); }
  // Control thread.
  void TakeAll();
  // The thread of a lane.
  void Report(uint64_t number);

 private:
  const UniqueFd wake_;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, std::function<void()>> expected_;
  std::mutex mutex_;  // guards the one below
  std::vector<uint64_t> returned_;
};

}  // namespace rocegw::session
