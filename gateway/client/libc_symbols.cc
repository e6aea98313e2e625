// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/libc_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "gateway/client/raw_syscall.h"

namespace rocegw::client {

namespace {

DlsymFunction g_dlsym = nullptr;
DlvsymFunction g_dlvsym = nullptr;

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

// The dynamic symbol table of one loaded object. The loader has relocated the addresses in it.
struct SymbolTable {
  ElfW(Addr) base;
  const ElfW(Sym) * symbols;
  const char* strings;
  const uint32_t* gnu_hash;
};

bool ReadTable(const dl_phdr_info& object, SymbolTable* table) {
  *table = {object.dlpi_addr, nullptr, nullptr, nullptr};
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_SYMTAB) {
        table->symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
      } else if (entry->d_tag == DT_STRTAB) {
        table->strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
      } else if (entry->d_tag == DT_GNU_HASH) {
        table->gnu_hash = reinterpret_cast<const uint32_t*>(entry->d_un.d_ptr);
      }
    }
  }
  return table->symbols != nullptr && table->strings != nullptr && table->gnu_hash != nullptr;
}

// All versions of one function share one address or differ in ways that do not matter for dlsym:
// the first will do.
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
        strcmp(table.strings + symbol.st_name, name) == 0) {
      return reinterpret_cast<void*>(table.base + symbol.st_value);
    }
    if ((link & 1) != 0) return nullptr;
  }
}

// dlsym lives in libc.so.6 since glibc 2.34, before in libdl.so.2.
int Visit(dl_phdr_info* object, size_t, void*) {
  const char* slash = strrchr(object->dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : object->dlpi_name;
  if (strcmp(file, "libc.so.6") != 0 && strcmp(file, "libdl.so.2") != 0) return 0;
  SymbolTable table;
  if (!ReadTable(*object, &table)) return 0;
  void* symbol = FindFunction(table, "dlsym");
  void* versioned = FindFunction(table, "dlvsym");
  if (symbol == nullptr || versioned == nullptr) return 0;
  __atomic_store_n(&g_dlvsym, reinterpret_cast<DlvsymFunction>(versioned), __ATOMIC_RELEASE);
  __atomic_store_n(&g_dlsym, reinterpret_cast<DlsymFunction>(symbol), __ATOMIC_RELEASE);
  return 1;
}

int VisitForDlopen(dl_phdr_info* object, size_t, void* found) {
  const char* slash = strrchr(object->dlpi_name, '/');
  SymbolTable table;
  if (strcmp(slash != nullptr ? slash + 1 : object->dlpi_name, "libc.so.6") != 0) return 0;
  if (ReadTable(*object, &table)) {
    *static_cast<void**>(found) = FindFunction(table, "__libc_dlopen_mode");
  }
  return 1;
}

// Of a program that does not use it, where it is a library of its own. By what the C library loads
// its own parts with in those releases.
void LoadLibdl() {
  constexpr int kDlopen = static_cast<int>(0x80000000);  // __RTLD_DLOPEN
  void* found = nullptr;
  dl_iterate_phdr(&VisitForDlopen, &found);
  const auto load = reinterpret_cast<void* (*)(const char*, int)>(found);
  if (load != nullptr) load("libdl.so.2", RTLD_NOW | kDlopen);
}

void Find() {
  if (__atomic_load_n(&g_dlsym, __ATOMIC_ACQUIRE) != nullptr) return;
  if (dl_iterate_phdr(&Visit, nullptr) != 0) return;
  LoadLibdl();
  if (dl_iterate_phdr(&Visit, nullptr) != 0) return;
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
