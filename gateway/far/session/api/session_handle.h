// SPDX-License-Identifier: Apache-2.0
// What the files that implement the calls of the library share: the session behind the handle of
// rocegw_memory.h, and their common ends of calls.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>

#include "gateway/base/status.h"
#include "gateway/far/session/session.h"

struct rocegw_memory_session {
  std::unique_ptr<rocegw::far::Session> session;
};

namespace rocegw::far {

// Writes the status's text to `why`, if there is one. Returns the negative errno.
inline int Explain(const Status& status, char* why, size_t why_size) {
  if (why != nullptr && why_size != 0) std::snprintf(why, why_size, "%s", status.text().c_str());
  return -status.error();
}

// Gives the caller the members that its version of the structure has, and zero for others.
template <typename Statistics>
void CopyStatistics(const Statistics& known, Statistics* statistics, size_t size) {
  std::memset(statistics, 0, size);
  std::memcpy(statistics, &known, std::min(size, sizeof known));
}

}  // namespace rocegw::far
