// SPDX-License-Identifier: Apache-2.0
// Small files that a power cut leaves either as they were or as they were to be. Blocking; start-up
// and renewals. Errors name the file.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "gateway/base/status.h"

namespace rocegw::identity {

// Replaces the file; it has its mode from the beginning.
Status WriteDurably(const std::string& path, std::string_view content, mode_t mode);
// At most 1 MiB. ENOENT: there is none.
StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace rocegw::identity
