// SPDX-License-Identifier: Apache-2.0
// Neighbours of an interface that the kernel failed to resolve, and which of them are routers
// (rtnetlink(7)). Blocking; control path, any thread.
#pragma once

#include <string>

#include "gateway/doctor/facts.h"

namespace rocegw::doctor {

// Adds the neighbours; nothing if the kernel does not report them.
void ReadNeighbours(const std::string& interface, InterfaceFacts& facts);

}  // namespace rocegw::doctor
