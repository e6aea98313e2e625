// SPDX-License-Identifier: Apache-2.0
// Threads that call the drivers of GPUs: any thread of a daemon; in a program's own process a
// thread that has the program's descriptors, among which a driver keeps its devices.
#pragma once

#include <functional>

namespace rocegw::device_memory {

// Runs a call where the drivers may be called, and returns when it has returned. Empty: here.
using CallDriver = std::function<void(const std::function<void()>&)>;

inline void Call(const CallDriver& where, const std::function<void()>& call) {
  if (where) {
    where(call);
  } else {
    call();
  }
}

}  // namespace rocegw::device_memory
