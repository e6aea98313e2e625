// SPDX-License-Identifier: Apache-2.0
// Remote memory of this process: opened at the first large mapping, and gone in a child of fork.
#pragma once

#include <cstddef>
#include <vector>

#include "gateway/far/preload/far_memory.h"

namespace rocegw::far {

// While an object lives, mappings and allocations of this thread stay here: they are those of the
// library itself.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool Is();

 private:
  const bool before_;
};

// The memory, opened if need be; nullptr when a mapping of so many bytes stays here.
FarMemory* ForMapping(size_t bytes);
// The memory, when the address is in its window. `*at_all`: an address there is of no use, because
// this is the child of a fork.
FarMemory* Owner(const void* at);
// The memory, when it is open.
FarMemory* Opened();
// Whether the address is in the window that the parent of this process has.
bool IsOfParent(const void* at);
// Nothing more becomes remote (mlockall).
void Close();
// Descriptors that the memory needs, in ascending order; other threads may have opened some of
// them.
const std::vector<int>& KeptDescriptors();

}  // namespace rocegw::far
