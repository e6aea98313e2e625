// SPDX-License-Identifier: Apache-2.0
// Forwarding of a drop-in library's functions: to librocegw-verbs.so if it has the function, in its
// newest version, else to the installed library whose name the drop-in has taken. Found at the
// first call. ROCEGW_NAMES is the generated list, ROCEGW_LIBRARY the installed library.
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/real_library.h"

// Lookup function of librocegw-verbs.so, its only name that is not for programs: returns its
// function of that name, or nullptr.
extern "C" void* rocegw_find_function(const char* name);

namespace rocegw::client {

namespace {

struct Name {
  const char* name;
  const char* version;
  bool newest;  // version that the linker gives to new programs
};

constexpr Name kNames[] = {
#define ROCEGW_NAME(name, version, newest) {name, version, newest},
#include ROCEGW_NAMES
#undef ROCEGW_NAME
};

// Ends the program like the loader when it cannot find a function.
[[noreturn]] void EndWithout(const Name& name) {
  char line[256];
  const int length = snprintf(line, sizeof(line),
                              "rocegw: %s (%s) is for the installed rdma-core to do, and there is "
                              "none on this machine, or an older one\n",
                              name.name, name.version);
  RawSyscall(SYS_write, STDERR_FILENO, line, static_cast<size_t>(length));
  _exit(127);
}

}  // namespace

}  // namespace rocegw::client

extern "C" {

__attribute__((visibility("hidden"))) void*
    rocegw_slots[sizeof(rocegw::client::kNames) / sizeof(rocegw::client::kNames[0])];

__attribute__((visibility("hidden"))) void* rocegw_find_target(unsigned index) {
  const int saved = errno;
  const rocegw::client::Name& wanted = rocegw::client::kNames[index];
  void* target = wanted.newest ? rocegw_find_function(wanted.name) : nullptr;
  if (target == nullptr) {
    target = rocegw::client::FindInRealLibrary(rocegw::client::RealLibrary::ROCEGW_LIBRARY,
                                               wanted.name, wanted.version);
  }
  if (target == nullptr) rocegw::client::EndWithout(wanted);
  __atomic_store_n(&rocegw_slots[index], target, __ATOMIC_RELEASE);
  errno = saved;
  return target;
}
}
