// SPDX-License-Identifier: Apache-2.0
// Reports to operators: events, and lines of the log at a limited rate. Control thread.
#pragma once

#include <string>

#include "gateway/loop/control_loop.h"
#include "gateway/session/state/event_log.h"
#include "gateway/session/state/log_limiter.h"

namespace rocegw::session {

// Returns CLOCK_REALTIME in ns since 1970.
int64_t WallClockNs();

class Reports {
 public:
  // `events` outlives the object.
  Reports(EventLog& events, Log log) : events_(events), log_(std::move(log)) {}

  void Say(Severity severity, const std::string& line) {
    log_.Say(severity, line, ControlLoop::Now());
  }
  // Reports an event, and at a limited rate a line in the log.
  void Tell(const std::string& reason, const std::string& object, const std::string& subject,
            const std::string& text);

 private:
  EventLog& events_;
  LogLimiter log_;
};

}  // namespace rocegw::session
