// SPDX-License-Identifier: Apache-2.0
// The functions of the installed libibverbs and librdmacm, for handles that are theirs. Any thread.
#pragma once

namespace rocegw::client {

// nullptr when the machine does not have the library or the library not the function.
void* FindReal(const char* name);

}  // namespace rocegw::client

// The installed function of the same name and type as the exported one.
#define ROCEGW_REAL(function) \
  (reinterpret_cast<decltype(&(function))>(::rocegw::client::FindReal(#function)))

// Definitions that programs see; everything else in the library is hidden.
#define ROCEGW_EXPORT extern "C" __attribute__((visibility("default")))
