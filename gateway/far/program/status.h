// SPDX-License-Identifier: Apache-2.0
// rocegw-memory status: what a donor or a mount says on its metrics page.
#pragma once

#include <string>

namespace rocegw::far {

// `address`: "ADDRESS:PORT" of the metrics page. Returns the exit status.
int ShowStatus(const std::string& address);

// Lines "NAME  VALUE" of the page's samples of remote memory, without their prefix and with sizes
// in units. Pure.
std::string StatusLines(const std::string& page);

}  // namespace rocegw::far
