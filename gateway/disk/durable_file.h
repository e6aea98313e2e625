// SPDX-License-Identifier: Apache-2.0
// Small files that have either their old or their new content after a power failure. Blocking;
// start-up and renewals. Errors name the file.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "gateway/base/status.h"

namespace rocegw::identity {

// Replaces the file; the mode holds from the start.
Status WriteDurably(const std::string& path, std::string_view content, mode_t mode);
// Reads at most 1 MiB. ENOENT: no file.
StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace rocegw::identity
