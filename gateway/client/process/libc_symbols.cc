// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/libc_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>

#include "gateway/client/process/plain_text.h"
#include "gateway/client/process/raw_syscall.h"

namespace rocegw::client {

namespace {

DlsymFunction g_dlsym = nullptr;
DlvsymFunction g_dlvsym = nullptr;

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// Dynamic symbol table of one loaded object. The loader has relocated its addresses.
struct SymbolTable {
  ElfW(Addr) base;
  const ElfW(Sym) * symbols;
  const char* strings;
  const uint32_t* gnu_hash;
};

bool ReadTable(const link_map& object, SymbolTable* table) {
  *table = {object.l_addr, nullptr, nullptr, nullptr};
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) {
      table->symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
    } else if (entry->d_tag == DT_STRTAB) {
      table->strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    } else if (entry->d_tag == DT_GNU_HASH) {
      table->gnu_hash = reinterpret_cast<const uint32_t*>(entry->d_un.d_ptr);
    }
  }
  return table->symbols != nullptr && table->strings != nullptr && table->gnu_hash != nullptr;
}

// All versions of a function share one address or differ in ways that do not matter for dlsym, so
// the first one serves.
void* FindFunction(const SymbolTable& table, const char* name) {
  const uint32_t bucket_count = table.gnu_hash[0];
  const uint32_t first_symbol = table.gnu_hash[1];
  const uint32_t bloom_words = table.gnu_hash[2];
  const uint32_t* buckets = table.gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const uint32_t* chain = buckets + bucket_count;
  if (bucket_count == 0) return nullptr;
  const uint32_t hash = GnuHash(name);
  uint32_t index = buckets[hash % bucket_count];
  if (index < first_symbol) return nullptr;
  for (;; ++index) {
    const uint32_t link = chain[index - first_symbol];
    const ElfW(Sym)& symbol = table.symbols[index];
    if ((link | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        CompareText(table.strings + symbol.st_name, name) == 0) {
      return reinterpret_cast<void*>(table.base + symbol.st_value);
    }
    if ((link & 1) != 0) return nullptr;
  }
}

bool IsFile(const link_map& object, const char* name) {
  return CompareText(FileOf(object.l_name), name) == 0;
}

// Walks the loader's own list. Programs with their own dl_iterate_phdr (sanitizers, databases that
// cache its result) cannot be asked before main.
bool FindDlsym() {
  for (const link_map* object = _r_debug.r_map; object != nullptr; object = object->l_next) {
    // dlsym is in libc.so.6 since glibc 2.34, before in libdl.so.2.
    SymbolTable table;
    if (!IsFile(*object, "libc.so.6") && !IsFile(*object, "libdl.so.2")) continue;
    if (!ReadTable(*object, &table)) continue;
    void* symbol = FindFunction(table, "dlsym");
    void* versioned = FindFunction(table, "dlvsym");
    if (symbol == nullptr || versioned == nullptr) continue;
    __atomic_store_n(&g_dlvsym, reinterpret_cast<DlvsymFunction>(versioned), __ATOMIC_RELEASE);
    __atomic_store_n(&g_dlsym, reinterpret_cast<DlsymFunction>(symbol), __ATOMIC_RELEASE);
    return true;
  }
  return false;
}

void* FindLoad() {
  for (const link_map* object = _r_debug.r_map; object != nullptr; object = object->l_next) {
    SymbolTable table;
    if (IsFile(*object, "libc.so.6") && ReadTable(*object, &table)) {
      return FindFunction(table, "__libc_dlopen_mode");
    }
  }
  return nullptr;
}

// Loads libdl for programs that do not use it, in releases where it is a separate library, with the
// C library's internal loader function.
void LoadLibdl() {
  constexpr int kDlopen = static_cast<int>(0x80000000);  // __RTLD_DLOPEN
  const auto load = reinterpret_cast<void* (*)(const char*, int)>(FindLoad());
  if (load != nullptr) load("libdl.so.2", RTLD_NOW | kDlopen);
}

void Find() {
  if (__atomic_load_n(&g_dlsym, __ATOMIC_ACQUIRE) != nullptr) return;
  if (FindDlsym()) return;
  LoadLibdl();
  if (FindDlsym()) return;
  static const char kLine[] = "rocegw: cannot find dlsym in the C library of this process\n";
  RawSyscall(SYS_write, STDERR_FILENO, kLine, sizeof(kLine) - 1);
  abort();
}

}  // namespace

DlsymFunction LibcDlsym() {
  Find();
  return g_dlsym;
}

DlvsymFunction LibcDlvsym() {
  Find();
  return g_dlvsym;
}

void* OpenLibrary(const char* file, int flags) {
  using Open = void* (*)(const char*, int);
  const auto open = reinterpret_cast<Open>(LibcDlsym()(RTLD_DEFAULT, "dlopen"));
  return open != nullptr ? open(file, flags) : nullptr;
}

}  // namespace rocegw::client
