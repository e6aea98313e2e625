// SPDX-License-Identifier: Apache-2.0
// Last good configuration on disk. Written to a second file, synced, renamed: after a crash at any
// time the file has the old state or the new one. Control thread; a write takes as long as the
// disk.
#pragma once

#include <string>

#include "gateway/base/status.h"
#include "rocegw/gateway/v1/config.pb.h"

namespace rocegw::apply {

Status WriteStateFile(const std::string& path, const gateway::v1::GetConfigResponse& state);
// Returns false if there is no file (or the path is empty); an error if it is unreadable or
// damaged.
StatusOr<bool> ReadStateFile(const std::string& path, gateway::v1::GetConfigResponse& state);

}  // namespace rocegw::apply
