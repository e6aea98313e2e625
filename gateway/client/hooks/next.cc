// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/hooks/next.h"

#include <dlfcn.h>

#include "gateway/client/libc_symbols.h"

namespace rocegw::client {

void* FindNext(const char* name) {
  void* function = LibcDlsym()(RTLD_NEXT, name);
  return function;
}

}  // namespace rocegw::client
