// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/rules/reports.h"

#include <time.h>

namespace rocegw::session {

int64_t WallClockNs() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

void Reports::Tell(const std::string& reason, const std::string& object, const std::string& subject,
                   const std::string& text) {
  if (events_.Add(reason, object, subject, text, WallClockNs(), ControlLoop::Now()))
    Say(Severity::kWarning, text);
}

}  // namespace rocegw::session
