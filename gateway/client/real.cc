// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/real.h"

#include <dlfcn.h>

#include <cstring>

#include "gateway/client/libc_symbols.h"
#include "gateway/client/real_library.h"

namespace rocegw::client {

void* FindReal(const char* name) {
  void* function = LibcDlsym()(RTLD_NEXT, name);
  if (function != nullptr && !IsInDropIn(function)) return function;
  return FindInRealLibrary(
      strncmp(name, "rdma_", 5) == 0 ? RealLibrary::kConnectionManager : RealLibrary::kVerbs, name,
      nullptr);
}

}  // namespace rocegw::client
