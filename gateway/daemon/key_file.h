// SPDX-License-Identifier: Apache-2.0
// File with the keys that the gateways of a fleet share. One key
// per line, 32 hexadecimal digits (128 bits); empty lines and lines that begin with '#' do not
// count. The first key makes tags, the others only verify them. Start-up and SIGHUP, one thread.
#pragma once

#include <string>

#include "gateway/base/fleet_keys.h"
#include "gateway/base/status.h"

namespace rocegw::daemon {

// Keys in the order of the file; the policy of the result is the default one. An error tells what
// is wrong with the file and how to mend it, and never shows a part of a key. A file that others
// than its owner may read or write, that another user than root or this process's owns, or that is
// no regular file is refused.
StatusOr<FleetKeys> ReadKeyFile(const std::string& path);

}  // namespace rocegw::daemon
