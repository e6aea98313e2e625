// SPDX-License-Identifier: Apache-2.0
// Files that a donor and its agent exchange. Neither trusts the other's file: reading one never
// blocks, follows no link and takes a bounded number of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/base/status.h"

namespace rocegw::far {

struct FolderFile {
  std::string text;
  int64_t changed_ns = 0;  // time of the last change, since 1970
};

// ENOENT: no file. EINVAL: no regular file, or too long.
StatusOr<FolderFile> ReadFolderFile(const std::string& path);
// Replaces the file as a whole. It need not survive a power failure.
Status ReplaceFolderFile(const std::string& path, std::string_view text);

}  // namespace rocegw::far
