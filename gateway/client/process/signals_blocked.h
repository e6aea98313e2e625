// SPDX-License-Identifier: Apache-2.0
// Scope in which no signal handler of the program runs on this thread: a handler could wait for a
// lock that its own thread holds. Any thread; errno is kept.
#pragma once

#include <csignal>
#include <cstdint>

#include "gateway/client/process/raw_syscall.h"

namespace rocegw::client {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    const uint64_t all = ~uint64_t{0};
    RawSyscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before_, sizeof(before_));
  }
  ~SignalsBlocked() {
    RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof(before_));
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  uint64_t before_ = 0;  // the kernel's set; libc's leaves out two signals
};

}  // namespace rocegw::client
