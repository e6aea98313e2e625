// SPDX-License-Identifier: Apache-2.0
// SIGBUS of threads that touch a window whose faults they handle themselves. The handler of the
// program, if it had one when the first such window was opened, gets every SIGBUS that is of no
// window. Any thread; the handler uses no lock of this file.
#pragma once

#include <cstdint>

namespace rocegw::far {

class Window;

class BusErrors {
 public:
  static constexpr int kMostWindows = 64;
  // Whether the kernel says that a fault is one of a store.
#if defined(__x86_64__)
  static constexpr bool kStoresAreKnown = true;
#else
  static constexpr bool kStoresAreKnown = false;
#endif

  // The window handles faults of [begin, end) from now on. Returns false when there are too many
  // windows, or the kernel refuses the handler.
  static bool Add(Window* window, uintptr_t begin, uintptr_t end);
  // No thread uses the window.
  static void Remove(const Window* window);
  // Handles a fault: `info` and `context` are those of a signal handler. Returns false when it is
  // of no window, or of a page that is lost.
  static bool Handle(const void* info, const void* context);
};

}  // namespace rocegw::far
