// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/real_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gateway/client/process/environment.h"
#include "gateway/client/process/libc_symbols.h"

namespace rocegw::client {

namespace {

// Library that only the drop-in pair needs.
constexpr char kOurName[] = "librocegw-verbs.so";

// Directories in which distributions keep libraries of this word size, after LD_LIBRARY_PATH. The
// loader's cache cannot be asked: it answers with the loaded library of that name, the pair.
constexpr const char* kFolders[] = {"/usr/local/lib/x86_64-linux-gnu",
                                    "/usr/local/lib64",
                                    "/usr/local/lib",
                                    "/usr/lib/x86_64-linux-gnu",
                                    "/usr/lib64",
                                    "/lib/x86_64-linux-gnu",
                                    "/lib64",
                                    "/usr/lib",
                                    "/lib"};

struct Library {
  const char* file;
  const char* probe;  // function that every release has
  void* handle;
};
Library g_libraries[] = {{"libibverbs.so.1", "ibv_get_device_list", nullptr},
                         {"librdmacm.so.1", "rdma_create_id", nullptr}};

bool IsReal(const Library& library, void* handle) {
  void* function = LibcDlsym()(handle, library.probe);
  return function != nullptr && !IsInDropIn(function);
}

void* OpenIn(const Library& library, const char* folder, size_t length) {
  char path[4096];
  const int written =
      snprintf(path, sizeof(path), "%.*s/%s", static_cast<int>(length), folder, library.file);
  if (length == 0 || written < 0 || static_cast<size_t>(written) >= sizeof(path)) return nullptr;
  void* handle = OpenLibrary(path, RTLD_LAZY | RTLD_LOCAL);
  // Another copy of the pair stays loaded, since closing it has no use.
  return handle != nullptr && IsReal(library, handle) ? handle : nullptr;
}

void* OpenBehindDropIn(const Library& library) {
  // Functions of the installed library call each other by name (rsockets consist of rdma_* calls):
  // these must find the pair, even if the program has loaded it RTLD_LOCAL.
  OpenLibrary(library.file, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
  const char* paths = Setting("LD_LIBRARY_PATH");
  while (paths != nullptr && *paths != '\0') {
    const size_t length = strcspn(paths, ":;");
    if (void* handle = OpenIn(library, paths, length)) return handle;
    paths += length + (paths[length] != '\0' ? 1 : 0);
  }
  for (const char* folder : kFolders) {
    if (void* handle = OpenIn(library, folder, strlen(folder))) return handle;
  }
  return nullptr;
}

struct Search {
  ElfW(Addr) address;
  bool needs_us;
};

bool Contains(const dl_phdr_info& object, ElfW(Addr) address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const ElfW(Addr) start = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= start && address < start + segment.p_memsz) {
      return true;
    }
  }
  return false;
}

bool NeedsUs(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entries =
        reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    const char* strings = nullptr;
    for (const auto* entry = entries; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    }
    for (const auto* entry = entries; strings != nullptr && entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_NEEDED && strcmp(strings + entry->d_un.d_val, kOurName) == 0) {
        return true;
      }
    }
  }
  return false;
}

int Visit(dl_phdr_info* object, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  if (!Contains(*object, search->address)) return 0;
  search->needs_us = NeedsUs(*object);
  return 1;
}

}  // namespace

bool IsInDropIn(const void* address) {
  Search search = {reinterpret_cast<ElfW(Addr)>(address), false};
  dl_iterate_phdr(&Visit, &search);
  return search.needs_us;
}

void* FindInRealLibrary(RealLibrary which, const char* name, const char* version) {
  Library& library = g_libraries[static_cast<int>(which)];
  void* handle = __atomic_load_n(&library.handle, __ATOMIC_ACQUIRE);
  if (handle == nullptr) {
    handle = OpenLibrary(library.file, RTLD_LAZY | RTLD_LOCAL);
    if (handle != nullptr && !IsReal(library, handle)) handle = OpenBehindDropIn(library);
    if (handle == nullptr) return nullptr;
    __atomic_store_n(&library.handle, handle, __ATOMIC_RELEASE);
  }
  return version != nullptr ? LibcDlvsym()(handle, name, version) : LibcDlsym()(handle, name);
}

}  // namespace rocegw::client
