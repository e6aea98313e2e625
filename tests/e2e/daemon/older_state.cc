// SPDX-License-Identifier: Apache-2.0
// Part of rocegwd_of_older_state: a rocegwd that writes and reads only earlier versions of states,
// as a gateway of an earlier commit does. ROCEGW_OLDER_STATE: "previous", the version before
// today's of each kind of record; "oldest", the oldest version that today's gateways read.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gateway/hand_over/state_versions.h"

namespace rocegw::hand_over {
namespace {

uint16_t Oldest(const StateKindInfo& kind) { return kind.oldest; }

uint16_t Previous(const StateKindInfo& kind) {
  return std::max<uint16_t>(kind.oldest, kind.version - 1);
}

// Runs before main.
const bool limited = [] {
  const char* const name = std::getenv("ROCEGW_OLDER_STATE");
  const bool oldest = name != nullptr && std::strcmp(name, "oldest") == 0;
  if (!oldest && (name == nullptr || std::strcmp(name, "previous") != 0)) {
    std::fprintf(stderr, "ROCEGW_OLDER_STATE must be previous or oldest\n");
    std::exit(2);
  }
  LimitVersions(oldest ? Oldest : Previous);
  std::fprintf(stderr, "states of the %s versions:", name);
  for (const StateKindInfo& kind : kStateKinds) {
    if (NewestVersion(kind) != kind.version)
      std::fprintf(stderr, " %s %d of %d", kind.name, NewestVersion(kind), kind.version);
  }
  std::fprintf(stderr, "\n");
  return true;
}();

}  // namespace
}  // namespace rocegw::hand_over
