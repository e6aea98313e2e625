// SPDX-License-Identifier: Apache-2.0
// Stands for librocegw-engine.so: makes the file ENGINE_MARK when it is loaded.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace {

__attribute__((constructor)) void LeaveMark() {
  const char* const mark = std::getenv("ENGINE_MARK");
  if (mark != nullptr) close(open(mark, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

}  // namespace
