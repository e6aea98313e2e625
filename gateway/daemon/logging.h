// SPDX-License-Identifier: Apache-2.0
// Log set-up of rocegwd: lines go to stderr. Under the journal they carry the priority prefix of
// sd-daemon(3) and no time, since the journal adds its own; elsewhere time and level. Never called
// on the packet path.
#pragma once

#include "gateway/daemon/config.h"

namespace rocegw::daemon {

void StartLogging(LogLevel level);
void SetLogLevel(LogLevel level);

}  // namespace rocegw::daemon
