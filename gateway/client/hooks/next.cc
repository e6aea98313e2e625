// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/hooks/next.h"

#include <dlfcn.h>

#include <cstring>

#include "gateway/client/process/libc_symbols.h"

namespace rocegw::client {

void* FindNext(const char* name) {
  // Before glibc 2.36 RTLD_NEXT gives the oldest version: for realpath one that requires a buffer.
  if (strcmp(name, "realpath") == 0) {
    if (void* newest = LibcDlvsym()(RTLD_NEXT, name, "GLIBC_2.3")) return newest;
  }
  return LibcDlsym()(RTLD_NEXT, name);
}

}  // namespace rocegw::client
