// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/in_process.h"

#include <dlfcn.h>
#include <link.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gateway/client/process/environment.h"
#include "gateway/client/process/libc_symbols.h"

namespace rocegw::client {

rocegw_engine_progress_function* run_gateway = nullptr;

namespace {

constexpr char kLibrary[] = "librocegw-engine.so";

rocegw_engine_attach_function* g_attach = nullptr;

struct Search {
  uintptr_t address;
  const char* file;
};

int VisitObject(dl_phdr_info* object, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || search->address - start >= segment.p_memsz) continue;
    search->file = object->dlpi_name;
    return 1;
  }
  return 0;
}

// Finds the library beside the file of this code. Returns false if the name is too long.
bool FindLibrary(char* path, size_t size) {
  Search search = {reinterpret_cast<uintptr_t>(&VisitObject), ""};
  dl_iterate_phdr(&VisitObject, &search);
  const char* slash = strrchr(search.file, '/');
  const int folder = slash != nullptr ? static_cast<int>(slash - search.file + 1) : 0;
  const int length = snprintf(path, size, "%.*s%s", folder, search.file, kLibrary);
  return length > 0 && static_cast<size_t>(length) < size;
}

bool IsOne(const char* name) {
  const char* value = Setting(name);
  return value != nullptr && value[0] == '1' && value[1] == '\0';
}

}  // namespace

// The caller of a program with more rights must not choose what runs in it.
bool GatewayIsInProcess() { return IsOne("ROCEGW_IN_PROCESS"); }

int AttachInProcess(char* reason, size_t size) {
  static void* handle = nullptr;
  if (g_attach == nullptr) {
    char path[PATH_MAX];
    handle = FindLibrary(path, sizeof(path)) ? OpenLibrary(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (handle != nullptr) {
      g_attach = reinterpret_cast<rocegw_engine_attach_function*>(
          LibcDlsym()(handle, ROCEGW_ENGINE_ATTACH));
    }
    if (g_attach == nullptr) {
      snprintf(reason, size, "%s cannot be loaded; it belongs beside librocegw-verbs.so", path);
      return -ELIBACC;
    }
  }
  const int connected = g_attach(reason, size);
  // Set once: threads that poll read it.
  if (connected >= 0 && run_gateway == nullptr && IsOne("ROCEGW_RUN_IN_POLL")) {
    run_gateway = reinterpret_cast<rocegw_engine_progress_function*>(
        LibcDlsym()(handle, ROCEGW_ENGINE_PROGRESS));
  }
  return connected;
}

}  // namespace rocegw::client
