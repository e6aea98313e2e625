// SPDX-License-Identifier: Apache-2.0
// Small files that have either their old or their new content after a power failure. Blocking;
// start-up and renewals. Errors name the file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "gateway/base/status.h"

namespace rocegw {

// Replaces the file; the mode holds from the start.
Status WriteDurably(const std::string& path, std::string_view content, mode_t mode);
// ENOENT: no file. EFBIG: it has more bytes than `most`.
StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most = size_t{1} << 20);

}  // namespace rocegw
