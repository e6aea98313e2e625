// SPDX-License-Identifier: Apache-2.0
// rocegw-run: starts a program so that its RDMA calls go to the local gateway. Sets LD_PRELOAD and
// ROCEGW_SOCKET, after having looked whether that can work at all: a gateway that answers, and a
// program that the dynamic loader will hand the library to.
#include <elf.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gateway/abi/rocegw_abi.h"

namespace {

// As env(1) and its like: our own trouble, program not executable, program not found.
constexpr int kExitUsage = 125;
constexpr int kExitCannotRun = 126;
constexpr int kExitNotFound = 127;

constexpr char kHelp[] =
    "usage: rocegw-run [--socket PATH] [--library FILE] [--remap MODE] [--] PROGRAM [ARGUMENT "
    "...]\n"
    "\n"
    "Runs PROGRAM, which uses libibverbs or librdmacm, against the RDMA gateway of this host.\n"
    "\n"
    "  --socket PATH    where the gateway listens (default: $ROCEGW_SOCKET, else\n"
    "                   " ROCEGW_ATTACH_SOCKET
    ")\n"
    "  --library FILE   librocegw-verbs.so to load (default: the one beside this program)\n"
    "  --remap MODE     auto, always or never: whether registered memory may move onto pages that\n"
    "                   the gateway shares, where its pool allows that (default: $ROCEGW_REMAP,\n"
    "                   else auto)\n"
    "  --help           this text\n"
    "\n"
    "examples:\n"
    "  rocegw-run -- ibv_devinfo -v             the device, its GIDs and limits\n"
    "  rocegw-run -- ib_write_bw -d rocegw0 -x 0 PEER\n"
    "  rocegw-run -- rping -c -a PEER -v\n"
    "\n"
    "It sets LD_PRELOAD and ROCEGW_SOCKET; programs that PROGRAM starts inherit both. Devices of\n"
    "the machine itself stay usable. ROCEGW_DEBUG=1 tells what the library does.\n"
    "\n"
    "exit status: PROGRAM's; 125 wrong usage or no gateway, 126 PROGRAM cannot be run, 127 there\n"
    "is no such PROGRAM\n";

[[gnu::format(printf, 2, 3)]] int Fail(int status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fputs("rocegw-run: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
  return status;
}

bool IsFile(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode);
}

// In a build tree and an installation alike the library lies in ../lib or beside the program.
std::string FindLibrary() {
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return {};
  const std::string path(self, static_cast<size_t>(n));
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const char* place : {"/../lib/librocegw-verbs.so", "/librocegw-verbs.so",
                            "/../lib/x86_64-linux-gnu/librocegw-verbs.so"}) {
    std::string candidate = folder + place;
    char real[PATH_MAX];
    if (IsFile(candidate) && realpath(candidate.c_str(), real) != nullptr) return real;
  }
  return {};
}

// As execvp would find it; empty: nowhere.
std::string FindProgram(const char* name) {
  if (std::strchr(name, '/') != nullptr) return name;
  const char* variable = std::getenv("PATH");
  const std::string folders = variable != nullptr ? variable : "/usr/bin:/bin";
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = end == begin ? "." : folders.substr(begin, end - begin);
    std::string candidate = folder + "/" + name;
    if (IsFile(candidate) && access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return {};
}

// True for an ELF program without an interpreter: the loader never sees it, nor LD_PRELOAD.
bool IsStatic(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  Elf64_Ehdr header{};
  bool is_static = false;
  if (pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
      header.e_phentsize == sizeof(Elf64_Phdr)) {
    is_static = true;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment{};
      const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
      if (pread(fd, &segment, sizeof segment, at) != static_cast<ssize_t>(sizeof segment)) break;
      if (segment.p_type == PT_INTERP) is_static = false;
    }
  }
  close(fd);
  return is_static;
}

// 0 when somebody listens, else the errno.
int TryConnect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int error =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  if (error == 0) {
    // Until the gateway has let go of it: this connection must not count when the program comes.
    const timeval patience = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    shutdown(fd, SHUT_WR);
    char rest = 0;
    while (recv(fd, &rest, sizeof rest, 0) > 0) {
    }
  }
  close(fd);
  return error;
}

int Run(int argc, char** argv) {
  std::string socket_path;
  std::string library;
  std::string remap;
  int i = 1;
  for (; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--") {
      ++i;
      break;
    }
    if (option == "--help" || option == "-h") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    std::string* value = option == "--socket"    ? &socket_path
                         : option == "--library" ? &library
                         : option == "--remap"   ? &remap
                                                 : nullptr;
    if (value == nullptr && !option.empty() && option[0] == '-') {
      return Fail(kExitUsage, "no option %s; see rocegw-run --help", argv[i]);
    }
    if (value == nullptr) break;
    if (++i == argc) return Fail(kExitUsage, "%s needs a value", option.c_str());
    *value = argv[i];
  }
  if (!remap.empty() && remap != "auto" && remap != "always" && remap != "never") {
    return Fail(kExitUsage, "--remap is auto, always or never, not %s", remap.c_str());
  }
  if (i >= argc) return Fail(kExitUsage, "which program? See rocegw-run --help");

  if (socket_path.empty()) {
    const char* variable = std::getenv("ROCEGW_SOCKET");
    socket_path = variable != nullptr && *variable != 0 ? variable : ROCEGW_ATTACH_SOCKET;
  }
  if (library.empty()) library = FindLibrary();
  if (library.empty() || !IsFile(library)) {
    return Fail(kExitUsage,
                "librocegw-verbs.so is not beside this program; name it with --library");
  }
  const std::string program = FindProgram(argv[i]);
  struct stat s;
  if (program.empty() || stat(program.c_str(), &s) != 0) {
    return Fail(kExitNotFound, "%s: no such program", argv[i]);
  }
  if ((s.st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != 0) {
    return Fail(kExitCannotRun,
                "%s is setuid or setgid: the system does not load libraries into it",
                program.c_str());
  }
  if (IsStatic(program)) {
    return Fail(kExitCannotRun, "%s is linked statically: no library can be loaded into it",
                program.c_str());
  }
  if (const int error = TryConnect(socket_path); error != 0) {
    return Fail(kExitUsage, "no gateway at %s (%s): is rocegwd running here, and may you use it?",
                socket_path.c_str(), std::strerror(error));
  }
  std::string preload = library;
  if (const char* others = std::getenv("LD_PRELOAD"); others != nullptr && *others != 0) {
    preload += std::string(":") + others;
  }
  setenv("LD_PRELOAD", preload.c_str(), 1);
  setenv("ROCEGW_SOCKET", socket_path.c_str(), 1);
  if (!remap.empty()) setenv("ROCEGW_REMAP", remap.c_str(), 1);
  execv(program.c_str(), argv + i);
  return Fail(kExitCannotRun, "cannot run %s: %s", program.c_str(), std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) { return Run(argc, argv); }
