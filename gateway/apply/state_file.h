// SPDX-License-Identifier: Apache-2.0
// The last good configuration on disk. Written beside, synced, renamed: after a crash at any moment
// the file is the old state or the new one. Control thread; a write takes as long as the disk.
#pragma once

#include <string>

#include "gateway/base/status.h"
#include "rocegw/gateway/v1/config.pb.h"

namespace rocegw::apply {

Status WriteStateFile(const std::string& path, const gateway::v1::GetConfigResponse& state);
// False: there is none (also for an empty path). An error: it cannot be read, or is damaged.
StatusOr<bool> ReadStateFile(const std::string& path, gateway::v1::GetConfigResponse& state);

}  // namespace rocegw::apply
