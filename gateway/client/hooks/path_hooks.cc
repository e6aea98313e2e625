// SPDX-License-Identifier: Apache-2.0
// Functions of the C library that take paths. Each passes its path through RedirectPath and calls
// the function behind it. The C library's headers are not included on purpose: their declarations
// differ between releases (exception specifications, redirections), while the calls are the same in
// all. Structures are opaque here.
#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "gateway/client/hooks/next.h"
#include "gateway/client/process/real.h"
#include "gateway/client/process/redirect.h"

namespace rocegw::client {

namespace {

constexpr int kCreate = 0100;          // O_CREAT
constexpr int kTemporary = 020000000;  // O_TMPFILE without O_DIRECTORY
constexpr size_t kLongestPath = 512;   // our paths are shorter

struct Redirected {
  explicit Redirected(const char* asked) : path(RedirectPath(asked, buffer, sizeof(buffer))) {}
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  char buffer[kLongestPath];
  const char* path;
};

bool TakesMode(int flags) { return (flags & (kCreate | kTemporary)) != 0; }

}  // namespace

}  // namespace rocegw::client

using rocegw::client::Redirected;
using rocegw::client::TakesMode;

// Calls the next function with the name and type of the function in which this is used.
#define ROCEGW_NEXT(type, name)                                       \
  static void* next_##name = nullptr;                                 \
  auto* const next = rocegw::client::Next<type>(&next_##name, #name); \
  if (next == nullptr) {                                              \
    errno = ENOSYS;                                                   \
    return {};                                                        \
  }

#define ROCEGW_OPEN(name)                                    \
  ROCEGW_EXPORT int name(const char* path, int flags, ...) { \
    ROCEGW_NEXT(int(const char*, int, ...), name)            \
    const Redirected to(path);                               \
    if (!TakesMode(flags)) return next(to.path, flags);      \
    va_list arguments;                                       \
    va_start(arguments, flags);                              \
    const unsigned mode = va_arg(arguments, unsigned);       \
    va_end(arguments);                                       \
    return next(to.path, flags, mode);                       \
  }
ROCEGW_OPEN(open)
ROCEGW_OPEN(open64)

#define ROCEGW_OPENAT(name)                                                 \
  ROCEGW_EXPORT int name(int directory, const char* path, int flags, ...) { \
    ROCEGW_NEXT(int(int, const char*, int, ...), name)                      \
    const Redirected to(path);                                              \
    if (!TakesMode(flags)) return next(directory, to.path, flags);          \
    va_list arguments;                                                      \
    va_start(arguments, flags);                                             \
    const unsigned mode = va_arg(arguments, unsigned);                      \
    va_end(arguments);                                                      \
    return next(directory, to.path, flags, mode);                           \
  }
ROCEGW_OPENAT(openat)
ROCEGW_OPENAT(openat64)

// (path, A): int
#define ROCEGW_PATH_1(result, name, A)               \
  ROCEGW_EXPORT result name(const char* path, A a) { \
    ROCEGW_NEXT(result(const char*, A), name)        \
    const Redirected to(path);                       \
    return next(to.path, a);                         \
  }
ROCEGW_PATH_1(int, __open_2, int)
ROCEGW_PATH_1(int, __open64_2, int)
ROCEGW_PATH_1(void*, fopen, const char*)
ROCEGW_PATH_1(void*, fopen64, const char*)
ROCEGW_PATH_1(int, stat, void*)
ROCEGW_PATH_1(int, stat64, void*)
ROCEGW_PATH_1(int, lstat, void*)
ROCEGW_PATH_1(int, lstat64, void*)
ROCEGW_PATH_1(int, access, int)
ROCEGW_PATH_1(int, euidaccess, int)
ROCEGW_PATH_1(int, eaccess, int)
ROCEGW_PATH_1(char*, realpath, char*)

#define ROCEGW_PATH_2(result, name, A, B)                 \
  ROCEGW_EXPORT result name(const char* path, A a, B b) { \
    ROCEGW_NEXT(result(const char*, A, B), name)          \
    const Redirected to(path);                            \
    return next(to.path, a, b);                           \
  }
ROCEGW_PATH_2(long, readlink, char*, size_t)
ROCEGW_PATH_2(char*, __realpath_chk, char*, size_t)
ROCEGW_PATH_2(long, listxattr, char*, size_t)
ROCEGW_PATH_2(long, llistxattr, char*, size_t)

#define ROCEGW_PATH_3(result, name, A, B, C)                   \
  ROCEGW_EXPORT result name(const char* path, A a, B b, C c) { \
    ROCEGW_NEXT(result(const char*, A, B, C), name)            \
    const Redirected to(path);                                 \
    return next(to.path, a, b, c);                             \
  }
ROCEGW_PATH_3(long, __readlink_chk, char*, size_t, size_t)
ROCEGW_PATH_3(long, getxattr, const char*, void*, size_t)
ROCEGW_PATH_3(long, lgetxattr, const char*, void*, size_t)
ROCEGW_PATH_3(int, scandir, void***, void*, void*)
ROCEGW_PATH_3(int, scandir64, void***, void*, void*)

#define ROCEGW_PATH_0(result, name)             \
  ROCEGW_EXPORT result name(const char* path) { \
    ROCEGW_NEXT(result(const char*), name)      \
    const Redirected to(path);                  \
    return next(to.path);                       \
  }
ROCEGW_PATH_0(void*, opendir)
ROCEGW_PATH_0(int, chdir)
ROCEGW_PATH_0(char*, canonicalize_file_name)

// Functions with a number in front: a directory, or the structure's version in the forms used
// before glibc 2.33.
#define ROCEGW_AT_1(name, A)                                 \
  ROCEGW_EXPORT int name(int first, const char* path, A a) { \
    ROCEGW_NEXT(int(int, const char*, A), name)              \
    const Redirected to(path);                               \
    return next(first, to.path, a);                          \
  }
ROCEGW_AT_1(__openat_2, int)
ROCEGW_AT_1(__openat64_2, int)
ROCEGW_AT_1(__xstat, void*)
ROCEGW_AT_1(__xstat64, void*)
ROCEGW_AT_1(__lxstat, void*)
ROCEGW_AT_1(__lxstat64, void*)

#define ROCEGW_AT_2(result, name, A, B)                                  \
  ROCEGW_EXPORT result name(int directory, const char* path, A a, B b) { \
    ROCEGW_NEXT(result(int, const char*, A, B), name)                    \
    const Redirected to(path);                                           \
    return next(directory, to.path, a, b);                               \
  }
ROCEGW_AT_2(int, fstatat, void*, int)
ROCEGW_AT_2(int, fstatat64, void*, int)
ROCEGW_AT_2(int, faccessat, int, int)
ROCEGW_AT_2(long, readlinkat, char*, size_t)

#define ROCEGW_AT_3(result, name, A, B, C)                                    \
  ROCEGW_EXPORT result name(int directory, const char* path, A a, B b, C c) { \
    ROCEGW_NEXT(result(int, const char*, A, B, C), name)                      \
    const Redirected to(path);                                                \
    return next(directory, to.path, a, b, c);                                 \
  }
ROCEGW_AT_3(int, statx, int, unsigned, void*)
ROCEGW_AT_3(long, __readlinkat_chk, char*, size_t, size_t)

#define ROCEGW_VERSIONED_STATAT(name)                                                              \
  ROCEGW_EXPORT int name(int version, int directory, const char* path, void* to_fill, int flags) { \
    ROCEGW_NEXT(int(int, int, const char*, void*, int), name)                                      \
    const Redirected to(path);                                                                     \
    return next(version, directory, to.path, to_fill, flags);                                      \
  }
ROCEGW_VERSIONED_STATAT(__fxstatat)
ROCEGW_VERSIONED_STATAT(__fxstatat64)
