// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/report.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "gateway/client/process/environment.h"

namespace rocegw::client {

namespace {

bool IsSet(const char* name) {
  const char* value = Setting(name);
  return value != nullptr && value[0] != '\0' && !(value[0] == '0' && value[1] == '\0');
}

// Consumes the argument list; its caller has started it and ends it.
void Write(const char* format, va_list arguments) {
  char line[512];
  const int head = snprintf(line, sizeof(line), "rocegw[%d]: ", static_cast<int>(getpid()));
  const size_t room = sizeof(line) - static_cast<size_t>(head) - 1;
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): started by the callers
  int body = vsnprintf(line + head, room, format, arguments);
  if (body < 0) return;
  if (static_cast<size_t>(body) >= room) body = static_cast<int>(room) - 1;
  line[head + body] = '\n';
  // Not libc's write(2), which is a cancellation point.
  (void)syscall(SYS_write, STDERR_FILENO, line, head + body + 1);
}

}  // namespace

void Debug(const char* format, ...) {
  if (!IsSet("ROCEGW_DEBUG")) return;
  const int saved = errno;
  va_list arguments;
  va_start(arguments, format);
  Write(format, arguments);
  va_end(arguments);
  errno = saved;
}

void Warn(const char* format, ...) {
  if (!IsSet("ROCEGW_DEBUG") && !IsSet("ROCEGW_RUN")) return;
  const int saved = errno;
  va_list arguments;
  va_start(arguments, format);
  Write(format, arguments);
  va_end(arguments);
  errno = saved;
}

}  // namespace rocegw::client
