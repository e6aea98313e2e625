// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/disk/sync_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include "gateway/base/errno_status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::far {

Status SyncDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd directory(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || fsync(directory.get()) != 0) return ErrnoStatus(name);
  return OkStatus();
}

}  // namespace rocegw::far
