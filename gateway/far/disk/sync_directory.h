// SPDX-License-Identifier: Apache-2.0
// Keeps the name of a new or renamed file over a loss of power.
#pragma once

#include <string>

#include "gateway/base/status.h"

namespace rocegw::far {

// Writes the directory of the file to the disk (fsync(2)); blocks. Any thread.
Status SyncDirectoryOf(const std::string& path);

}  // namespace rocegw::far
