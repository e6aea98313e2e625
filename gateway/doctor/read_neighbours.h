// SPDX-License-Identifier: Apache-2.0
// Neighbours of an interface that the kernel has asked for in vain, and which of them are routers
// (rtnetlink(7)). Blocking; control path, any thread.
#pragma once

#include <string>

#include "gateway/doctor/facts.h"

namespace rocegw::doctor {

// Adds them; nothing where the kernel does not tell.
void ReadNeighbours(const std::string& interface, InterfaceFacts& facts);

}  // namespace rocegw::doctor
