// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/real.h"

#include <dlfcn.h>

#include <cstring>

#include "gateway/client/libc_symbols.h"

namespace rocegw::client {

namespace {

// dlopen is reached through the C library's dlsym: as an import it would tie us to the glibc
// release that moved it.
void* OpenLibrary(const char* file) {
  using Open = void* (*)(const char*, int);
  const auto open = reinterpret_cast<Open>(LibcDlsym()(RTLD_DEFAULT, "dlopen"));
  return open != nullptr ? open(file, RTLD_LAZY | RTLD_LOCAL) : nullptr;
}

void* g_libraries[2];
const char* const kFiles[2] = {"libibverbs.so.1", "librdmacm.so.1"};

}  // namespace

void* FindReal(const char* name) {
  if (void* function = LibcDlsym()(RTLD_NEXT, name)) return function;
  const int which = strncmp(name, "rdma_", 5) == 0 ? 1 : 0;
  void* library = __atomic_load_n(&g_libraries[which], __ATOMIC_ACQUIRE);
  if (library == nullptr) {
    library = OpenLibrary(kFiles[which]);
    if (library == nullptr) return nullptr;
    __atomic_store_n(&g_libraries[which], library, __ATOMIC_RELEASE);
  }
  return LibcDlsym()(library, name);
}

}  // namespace rocegw::client
