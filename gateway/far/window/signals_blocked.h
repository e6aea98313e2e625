// SPDX-License-Identifier: Apache-2.0
// Scope in which no signal handler of the program runs on this thread: a handler may touch memory
// of a window, and would wait for the thread that handles its fault while this thread holds a lock
// that the other one needs. Any thread; errno is kept.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace rocegw::far {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace rocegw::far
