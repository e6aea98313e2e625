// SPDX-License-Identifier: Apache-2.0
// Status of a system call that has just failed.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include "gateway/base/status.h"

namespace rocegw {

// Returns errno with "`what`: " and its text.
inline Status ErrnoStatus(const std::string& what) {
  const int error = errno;
  return {error, what + ": " + std::strerror(error)};
}

}  // namespace rocegw
