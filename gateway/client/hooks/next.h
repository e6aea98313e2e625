// SPDX-License-Identifier: Apache-2.0
// Function behind a hook: the same name in the next library of the search order, usually the C
// library. Looked up at the first call, which may come before any constructor has run. Any thread.
#pragma once

namespace rocegw::client {

// Returns nullptr if there is none.
void* FindNext(const char* name);

template <typename Function>
Function* Next(void** cache, const char* name) {
  void* known = __atomic_load_n(cache, __ATOMIC_RELAXED);
  if (known == nullptr) {
    known = FindNext(name);
    __atomic_store_n(cache, known, __ATOMIC_RELAXED);
  }
  return reinterpret_cast<Function*>(known);
}

}  // namespace rocegw::client
