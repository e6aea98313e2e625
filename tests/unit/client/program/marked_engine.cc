// SPDX-License-Identifier: Apache-2.0
// Stands for librocegw-engine.so: prints "engine" when a program loads it, and attaches nothing.
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace {

struct Loaded {
  Loaded() { (void)!::write(STDOUT_FILENO, "engine\n", 7); }
} g_loaded;

}  // namespace

extern "C" int rocegw_engine_attach(char*, size_t) { return -ENODEV; }
