// SPDX-License-Identifier: Apache-2.0
// Functions of the installed libibverbs and librdmacm, for handles of theirs. Any thread.
#pragma once

namespace rocegw::client {

// Returns nullptr if the machine lacks the library or the library the function.
void* FindReal(const char* name);

}  // namespace rocegw::client

// Installed function with the name and type of the exported one.
#define ROCEGW_REAL(function) \
  (reinterpret_cast<decltype(&(function))>(::rocegw::client::FindReal(#function)))

// Marks definitions that programs see; everything else in the library is hidden.
#define ROCEGW_EXPORT extern "C" __attribute__((visibility("default")))
