// SPDX-License-Identifier: Apache-2.0
// Remote memory of this process: opened at the first large mapping. A child of fork has none.
#pragma once

#include <cstddef>
#include <optional>

#include "gateway/far/preload/far_memory.h"
#include "gateway/far/window/signals_blocked.h"

namespace rocegw::far {

// While an object lives, mappings and allocations of this thread stay here: they are those of the
// library itself. Signals are blocked: a handler could wait for a lock that its own thread holds.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool Is();

 private:
  const bool before_;
  std::optional<SignalsBlocked> blocked_;
};

// The memory, opened if need be; nullptr when a mapping of so many bytes stays here, and for
// callers in the verbs libraries: the thread that reads pages may need what they map. `caller` is
// an address in the code that asks; nullptr: the program.
FarMemory* ForMapping(size_t bytes, const void* caller);
// The memory, when the address is in its window.
FarMemory* Owner(const void* at);
// The memory, when it was opened, by this process or its parent.
FarMemory* Known();
// Nothing more becomes remote (mlockall). Waits while another thread opens the memory.
void Close();

}  // namespace rocegw::far
