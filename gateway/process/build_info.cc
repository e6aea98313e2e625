// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/build_info.h"

#include "rocegw_revision.h"

namespace rocegw::process {

const char* Version() { return ROCEGW_VERSION; }

const char* Revision() { return ROCEGW_REVISION; }

const char* Compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

std::string VersionText() {
  const std::string revision = Revision();
  return revision.empty() ? Version() : std::string(Version()) + " (" + revision + ")";
}

}  // namespace rocegw::process
