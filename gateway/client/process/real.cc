// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/real.h"

#include <cstring>

#include "gateway/client/process/real_library.h"

namespace rocegw::client {

// Not by RTLD_NEXT: before glibc 2.36 that gives the oldest version of a function, which calls the
// newest, which is ours.
void* FindReal(const char* name) {
  return FindInRealLibrary(
      strncmp(name, "rdma_", 5) == 0 ? RealLibrary::kConnectionManager : RealLibrary::kVerbs, name,
      nullptr);
}

}  // namespace rocegw::client
