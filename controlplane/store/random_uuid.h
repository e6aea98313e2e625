// SPDX-License-Identifier: Apache-2.0
// Random UUID (version 4) from the kernel's generator. Any thread.
#pragma once

#include <string>

namespace rocegw::store {

std::string RandomUuid();

}  // namespace rocegw::store
