// SPDX-License-Identifier: Apache-2.0
// Forked process with its own mapping at the same address as the parent's from before the fork, for
// tests that access other processes. Killed and reaped at destruction.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "gateway/base/unique_fd.h"

namespace rocegw::testing {

class ChildProcess {
 public:
  struct Setup {
    size_t pages = 4;
    uid_t uid = 0;
    // Runs in the child before it reports ready, with access to its memory. The descriptor that it
    // returns (-1: none) is sent to the parent.
    std::function<int(uint8_t* memory)> prepare;
  };
  explicit ChildProcess(const Setup& setup);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_); }
  // Returns the descriptor that `prepare` returned.
  int fd() const { return fd_.get(); }
  int ReleaseFd() { return fd_.Release(); }
  void Kill();

 private:
  pid_t pid_ = -1;
  uint8_t* memory_ = nullptr;
  size_t bytes_ = 0;
  UniqueFd fd_;
};

inline constexpr size_t kPage = 4096;

}  // namespace rocegw::testing
