// SPDX-License-Identifier: Apache-2.0
// What the library says to a person: single lines on stderr, only with ROCEGW_DEBUG set or where
// the program was started by rocegw-run. The library is a guest in someone else's process. Any
// thread; keeps errno.
#pragma once

namespace rocegw::client {

// With ROCEGW_DEBUG only.
[[gnu::format(printf, 1, 2)]] void Debug(const char* format, ...);
// With ROCEGW_DEBUG or under rocegw-run.
[[gnu::format(printf, 1, 2)]] void Warn(const char* format, ...);

}  // namespace rocegw::client
