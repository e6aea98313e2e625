// SPDX-License-Identifier: Apache-2.0
// Which build this is. Constant; the revision is looked up when the library is linked into a build,
// not configured.
#pragma once

#include <string>

namespace rocegw::process {

const char* Version();   // "0.1.0"
const char* Revision();  // of the source, "" when built outside a repository
const char* Compiler();  // "gcc 12.2.0"
// "0.1.0 (1a2b3c4d5e6f)"
std::string VersionText();

}  // namespace rocegw::process
