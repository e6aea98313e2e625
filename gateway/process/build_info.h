// SPDX-License-Identifier: Apache-2.0
// Version of this build. Constant; the revision is looked up at link time, not at configuration
// time.
#pragma once

#include <string>

namespace rocegw::process {

const char* Version();   // "0.1.0"
const char* Revision();  // git revision, "" if built outside a repository
const char* Compiler();  // "gcc 12.2.0"
// "0.1.0 (1a2b3c4d5e6f)"
std::string VersionText();

}  // namespace rocegw::process
