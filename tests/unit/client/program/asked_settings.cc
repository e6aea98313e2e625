// SPDX-License-Identifier: Apache-2.0
// Program for tests of the library: lists the devices and prints what may not happen in a program
// with more rights than its caller: "asked NAME" for each variable ROCEGW_* that is read by
// getenv(3), and, from marked_engine.cc, "engine". Last it prints "secure" or "ordinary"
// (AT_SECURE).
#include <infiniband/verbs.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

// Takes the place of the C library's function for the library too.
extern "C" char* getenv(const char* name) noexcept {
  if (std::strncmp(name, "ROCEGW_", 7) == 0) {
    std::printf("asked %s\n", name);
    std::fflush(stdout);
  }
  const size_t length = std::strlen(name);
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    if (std::strncmp(*at, name, length) == 0 && (*at)[length] == '=') return *at + length + 1;
  }
  return nullptr;
}

int main() {
  ibv_device** const list = ibv_get_device_list(nullptr);
  for (ibv_device** at = list; at != nullptr && *at != nullptr; ++at) {
    ibv_context* const context = ibv_open_device(*at);
    if (context != nullptr) ibv_close_device(context);
  }
  if (list != nullptr) ibv_free_device_list(list);
  std::puts(getauxval(AT_SECURE) != 0 ? "secure" : "ordinary");
  return 0;
}
