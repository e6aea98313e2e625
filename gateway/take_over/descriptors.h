// SPDX-License-Identifier: Apache-2.0
// Judgement of descriptors that another process sent: each must be of the type that its kind says
// before a part of the gateway uses it. Any thread.
#pragma once

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"

namespace rocegw::take_over {

// Error: the descriptor is not of that kind, or the kind is unknown to this program.
Status JudgeFd(FdKind kind, const std::string& name, int fd);

}  // namespace rocegw::take_over
