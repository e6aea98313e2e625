// SPDX-License-Identifier: Apache-2.0
// Thread for system calls on a program's objects that the program may block for any time: close()
// of a lingering TCP socket or a FUSE file, statfs() of a FUSE file. The control thread never makes
// such calls itself. The calls of one call queue run one after the other, on a thread that serves
// no other call queue meanwhile, so a program can only delay its own calls. There are at most as
// many threads as call queues with calls. The owner of a call queue charges its pending calls to
// the session or pool (attach_server.h).
//
// The threads own what they use and may outlive all other objects: a blocked thread ends with its
// call.
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

class ClientCallQueue {
 public:
  static std::shared_ptr<ClientCallQueue> Make();
  virtual ~ClientCallQueue() = default;
  ClientCallQueue(const ClientCallQueue&) = delete;
  ClientCallQueue& operator=(const ClientCallQueue&) = delete;

  // Runs a call on the call queue's thread. The call must own what it uses. Any thread.
  virtual void Run(std::function<void()> call) = 0;
  void Close(UniqueFd descriptor);
  // Returns the number of calls that have not returned. Any thread.
  virtual size_t held() const = 0;
  // Returns the same for all call queues of the process.
  static size_t HeldByAll();

 protected:
  ClientCallQueue() = default;
};

// Descriptor that a program passed, or a socket that may contain such descriptors. The call queue
// closes it. Movable. Without a call queue it must be invalid.
class ClientFd {
 public:
  ClientFd() = default;
  ClientFd(UniqueFd descriptor, std::shared_ptr<ClientCallQueue> call_queue)
      : descriptor_(std::move(descriptor)), call_queue_(std::move(call_queue)) {}
  ClientFd(ClientFd&& other) noexcept = default;
  ClientFd& operator=(ClientFd&& other) noexcept {
    if (this != &other) {
      Reset();
      descriptor_ = std::move(other.descriptor_);
      call_queue_ = std::move(other.call_queue_);
    }
    return *this;
  }
  ~ClientFd() { Reset(); }

  int get() const { return descriptor_.get(); }
  bool valid() const { return descriptor_.valid(); }
  const std::shared_ptr<ClientCallQueue>& call_queue() const { return call_queue_; }
  // Releases a descriptor that was checked, so that closing it does not block.
  UniqueFd Release() { return std::move(descriptor_); }
  void Reset() {
    if (descriptor_.valid()) call_queue_->Close(std::move(descriptor_));
  }

 private:
  UniqueFd descriptor_;
  std::shared_ptr<ClientCallQueue> call_queue_;
};

// Reports returned calls to the control thread. Shared with the call queues' threads, which may
// outlive the loop: code for the control thread stays in this object.
class ReturnedCalls {
 public:
  ReturnedCalls();

  // Descriptor that is readable after a call has returned; then call TakeAll.
  int fd() const { return wake_.get(); }
  // Registers `done` to run after the call with the returned number. Control thread.
  uint64_t Expect(std::function<void()> done);
  // Removes a registration: `done` does not run. Control thread.
  void Abandon(uint64_t number) { expected_.erase(number); }
  // Runs the functions of returned calls. Control thread.
  void TakeAll();
  // Reports a returned call. Called on the call queue's thread.
  void Report(uint64_t number);

 private:
  const UniqueFd wake_;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, std::function<void()>> expected_;
  std::mutex mutex_;  // guards the next field
  std::vector<uint64_t> returned_;
};

}  // namespace rocegw::session
