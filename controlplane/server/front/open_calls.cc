// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/open_calls.h"

namespace rocegw::server {

bool OpenCalls::Begin(const std::string& principal) {
  const std::lock_guard lock(mutex_);
  Count& count = counts_[principal];
  if (++count.calls <= most_) return true;
  count = {.calls = 0, .generation = count.generation + 1};
  return false;
}

uint64_t OpenCalls::Generation(const std::string& principal) {
  const std::lock_guard lock(mutex_);
  return counts_[principal].generation;
}

void OpenCalls::End(const std::string& principal, uint64_t generation) {
  const std::lock_guard lock(mutex_);
  const auto at = counts_.find(principal);
  if (at != counts_.end() && at->second.generation == generation && at->second.calls != 0)
    --at->second.calls;
}

size_t OpenCalls::of(const std::string& principal) const {
  const std::lock_guard lock(mutex_);
  const auto at = counts_.find(principal);
  return at == counts_.end() ? 0 : at->second.calls;
}

}  // namespace rocegw::server
