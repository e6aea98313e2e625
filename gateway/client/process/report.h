// SPDX-License-Identifier: Apache-2.0
// Messages of the library to the user: single lines on stderr, only with ROCEGW_DEBUG set or if the
// program was started by rocegw-run, since the library is a guest in the process. Any thread; keeps
// errno.
#pragma once

namespace rocegw::client {

// Writes a line with ROCEGW_DEBUG only.
[[gnu::format(printf, 1, 2)]] void Debug(const char* format, ...);
// Writes a line with ROCEGW_DEBUG or under rocegw-run.
[[gnu::format(printf, 1, 2)]] void Warn(const char* format, ...);

}  // namespace rocegw::client
