// SPDX-License-Identifier: Apache-2.0
// dlsym and dlvsym of every program that runs with the library. Names that we own give our
// functions, for any handle and version, since programs that load libibverbs with dlopen would
// otherwise bypass the preloaded library. All other names go to the C library. That call must be
// the last one here, as a jump: the C library uses its return address to find the caller of
// RTLD_NEXT.
#include <cstddef>

#include "gateway/client/process/libc_symbols.h"
#include "gateway/client/process/plain_text.h"
#include "gateway/client/process/real.h"

#define ROCEGW_HOOKED_NAME(name) extern "C" void name();
#include "hooked_names.inc"
#undef ROCEGW_HOOKED_NAME

namespace rocegw::client {

namespace {

struct HookedName {
  const char* name;
  void (*function)();
};

// Sorted by name.
#define ROCEGW_HOOKED_NAME(name) {#name, &::name},
constexpr HookedName kHooked[] = {
#include "hooked_names.inc"
};
#undef ROCEGW_HOOKED_NAME

void* FindHooked(const char* name) {
  const char* prefix = name[0] == '_' ? name + 1 : name;
  if (!BeginsWith(prefix, "ibv_") && !BeginsWith(prefix, "rdma_")) return nullptr;
  size_t low = 0;
  size_t high = sizeof(kHooked) / sizeof(kHooked[0]);
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const int order = CompareText(name, kHooked[middle].name);
    if (order == 0) return reinterpret_cast<void*>(kHooked[middle].function);
    if (order < 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return nullptr;
}

}  // namespace

}  // namespace rocegw::client

// For the drop-in pair (drop_in/), whose functions have the same names.
ROCEGW_EXPORT void* rocegw_find_function(const char* name) {
  return rocegw::client::FindHooked(name);
}

ROCEGW_EXPORT void* dlsym(void* handle, const char* name) {
  if (void* ours = rocegw::client::FindHooked(name)) return ours;
  return rocegw::client::LibcDlsym()(handle, name);
}

ROCEGW_EXPORT void* dlvsym(void* handle, const char* name, const char* version) {
  if (void* ours = rocegw::client::FindHooked(name)) return ours;
  return rocegw::client::LibcDlvsym()(handle, name, version);
}
