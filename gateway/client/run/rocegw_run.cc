// SPDX-License-Identifier: Apache-2.0
// rocegw-run: starts a program so that its RDMA calls go to the local gateway, or to one inside the
// program. Sets LD_PRELOAD, or LD_LIBRARY_PATH to the drop-in pair, and the gateway's address,
// after checking that this can work: a gateway that answers, or a free port for one, and a program
// whose dynamic loader will load the library.
#include <arpa/inet.h>
#include <elf.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "gateway/abi/rocegw_abi.h"

namespace {

// Exit statuses like env(1): own failure, program not executable, program not found.
constexpr int kExitUsage = 125;
constexpr int kExitCannotRun = 126;
constexpr int kExitNotFound = 127;

constexpr uint16_t kRocePort = 4791;
// The libraries for remote memory need smaller pieces themselves, as a rule.
constexpr unsigned long long kFewestFarLeast = 64 << 10;
const std::string kDonorsDir = "/run/rocegw-donors";

constexpr char kHelp[] =
    "usage: rocegw-run [--socket PATH] [--wait SECONDS] [--drop-in] [--library FILE]\n"
    "                  [--remap MODE] [--] PROGRAM [ARGUMENT ...]\n"
    "       rocegw-run --in-process [--address IP] [--run-in-poll] [--placement] [--drop-in]\n"
    "                  [--library FILE] [--] PROGRAM [ARGUMENT ...]\n"
    "       rocegw-run --far FRACTION --far-donor HOST ... [--far-size SIZE] [--far-replicas N]\n"
    "                  [--far-least SIZE] [other options] [--] PROGRAM [ARGUMENT ...]\n"
    "\n"
    "Runs PROGRAM, which uses libibverbs or librdmacm, against the RDMA gateway of this host, or\n"
    "with a gateway of its own.\n"
    "\n"
    "  --socket PATH    where the gateway listens (default: $ROCEGW_SOCKET, else\n"
    "                   " ROCEGW_ATTACH_SOCKET
    ")\n"
    "  --wait SECONDS   waits so long for a gateway that is not there yet or starts anew "
    "(default:\n"
    "                   $ROCEGW_WAIT, else 0)\n"
    "  --drop-in        do not preload: have the loader find libibverbs.so.1 and librdmacm.so.1 "
    "in\n"
    "                   the folder rocegw-drop-in beside the library, for programs that load them\n"
    "                   in ways that get past preloaded libraries\n"
    "  --library FILE   librocegw-verbs.so to load (default: the one beside this program)\n"
    "  --remap MODE     auto, always or never: whether registered memory may move onto pages that\n"
    "                   the gateway shares, where its pool allows that (default: $ROCEGW_REMAP,\n"
    "                   else auto)\n"
    "  --in-process     no daemon: the gateway runs in threads of PROGRAM, from "
    "librocegw-engine.so\n"
    "                   beside the library; for one program at a time that wants the least "
    "latency\n"
    "  --address IP     with --in-process: the only address of this host that its gateway uses, "
    "so\n"
    "                   that others may have theirs (default: all of the interface with the "
    "default\n"
    "                   route)\n"
    "  --run-in-poll    with --in-process: threads that poll completion queues do the gateway's "
    "work\n"
    "                   in between, which is the least latency for programs that poll all the "
    "time\n"
    "  --placement      with --in-process: the device has FLUSH and ATOMIC WRITE, towards gateways "
    "that\n"
    "                   have them and towards RDMA devices, all of which should know them then\n"
    "  --far FRACTION   large anonymous mappings and blocks of malloc of PROGRAM, which need not\n"
    "                   know of RDMA, lie in memory of other hosts: this fraction of them at "
    "least,\n"
    "                   as 0.5, and the rest here\n"
    "  --far-donor HOST[:PORT]  a host that donates memory (rocegw-memory donate); once for each\n"
    "  --far-donors fleet  or: the controller chooses donors with room, by the agent of this host\n"
    "  --far-donors-dir DIRECTORY  where the agent answers (default: /run/rocegw-donors)\n"
    "  --far-size SIZE  bytes of remote memory for each process, as 4GiB (default: 1GiB)\n"
    "  --far-replicas N donors that hold each page, 1 to 4 (default: 1)\n"
    "  --far-least SIZE smaller mappings and blocks stay here (at least 64KiB, default: 1MiB)\n"
    "  --far-report     prints at the end what went to and fro\n"
    "  --help           this text\n"
    "\n"
    "examples:\n"
    "  rocegw-run -- ibv_devinfo -v             the device, its GIDs and limits\n"
    "  rocegw-run -- ib_write_bw -d rocegw0 -x 1 PEER\n"
    "  rocegw-run -- rping -c -a PEER -v\n"
    "  rocegw-run --in-process --address 192.0.2.7 -- ib_write_lat -R PEER\n"
    "  rocegw-run --far 0.5 --far-donor PEER --far-size 8GiB -- sort -S 6G large.txt\n"
    "\n"
    "It sets LD_PRELOAD (with --drop-in LD_LIBRARY_PATH) and ROCEGW_SOCKET (with --in-process\n"
    "ROCEGW_IN_PROCESS, ROCEGW_ADDRESS and ROCEGW_RUN); programs that PROGRAM starts inherit "
    "them.\n"
    "Devices of the machine itself stay usable. ROCEGW_DEBUG=1 tells what the library does.\n"
    "\n"
    "exit status: PROGRAM's; 125 wrong usage, no gateway or no port for one, 126 PROGRAM cannot "
    "be\n"
    "run, 127 there is no such PROGRAM\n";

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

// In a build tree and an installation the library is in ../lib or beside the program.
std::string FindLibrary() {
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  // Without /proc, in a bare chroot: the name by which it was run.
  const std::string path = n > 0 ? std::string(self, static_cast<size_t>(n))
                                 : reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const char* place :
       {"/../lib/librocegw-verbs.so", "/librocegw-verbs.so", "/../lib/rocegw/librocegw-verbs.so"}) {
    std::string candidate = folder + place;
    char real[PATH_MAX];
    if (IsFile(candidate) && realpath(candidate.c_str(), real) != nullptr) return real;
  }
  return {};
}

// Finds a program like execvp; empty: not found.
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

// Returns the loader of an ELF program; "none" for a statically linked one; empty for files that
// are no program of this machine (scripts).
std::string FindLoader(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  Elf64_Ehdr header{};
  std::string loader;
  if (pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
      header.e_phentsize == sizeof(Elf64_Phdr)) {
    loader = "none";
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment{};
      const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
      if (pread(fd, &segment, sizeof segment, at) != static_cast<ssize_t>(sizeof segment)) break;
      if (segment.p_type != PT_INTERP) continue;
      char name[PATH_MAX] = {};
      const size_t length = std::min<size_t>(segment.p_filesz, sizeof name - 1);
      loader = pread(fd, name, length, static_cast<off_t>(segment.p_offset)) > 0 ? name : "";
    }
  }
  close(fd);
  return loader;
}

bool HasCapabilities(const std::string& path) {
  return getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

// Returns the sanitizer whose runtime is in the program; nullptr: none. Its name is among the
// dynamic symbols, at the beginning of a file.
const char* FindSanitizer(const std::string& path) {
  constexpr size_t kMostBytes = size_t{16} << 20;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat s {};
  if (fd < 0) return nullptr;
  const size_t size = fstat(fd, &s) == 0 ? std::min<size_t>(s.st_size, kMostBytes) : 0;
  void* file = size != 0 ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (file == MAP_FAILED) return nullptr;
  const char* found = nullptr;
  for (const auto& [symbol, name] :
       {std::pair{"__tsan_init", "ThreadSanitizer"}, std::pair{"__asan_init", "AddressSanitizer"},
        std::pair{"__msan_init", "MemorySanitizer"}}) {
    if (found == nullptr && memmem(file, size, symbol, std::strlen(symbol) + 1) != nullptr) {
      found = name;
    }
  }
  munmap(file, size);
  return found;
}

// Returns a list, as in LD_PRELOAD and LD_LIBRARY_PATH, without one of its entries.
std::string Without(const char* list, const std::string& entry) {
  std::string rest;
  for (const char* at = list != nullptr ? list : ""; *at != 0;) {
    const size_t length = std::strcspn(at, ": ");
    if (length != 0 && entry.compare(0, std::string::npos, at, length) != 0) {
      rest += (rest.empty() ? "" : ":") + std::string(at, length);
    }
    at += length + (at[length] != 0 ? 1 : 0);
  }
  return rest;
}

void PutFirst(const char* variable, const std::string& entry) {
  const std::string others = Without(std::getenv(variable), entry);
  setenv(variable, (others.empty() ? entry : entry + ":" + others).c_str(), 1);
}

void Leave(const char* variable, const std::string& entry) {
  const std::string others = Without(std::getenv(variable), entry);
  if (others.empty()) {
    unsetenv(variable);
  } else {
    setenv(variable, others.c_str(), 1);
  }
}

bool IsNumber(const std::string& text) {
  constexpr size_t kMostDigits = 6;
  return !text.empty() && text.size() <= kMostDigits &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// Options that put memory of the program into that of other hosts.
struct FarOptions {
  std::string fraction, donors, from, donors_dir, size, replicas, least;
  bool report = false;

  // The variable for the option's value; nullptr: it is another option.
  std::string* Value(const std::string& option) {
    return option == "--far"              ? &fraction
           : option == "--far-donors"     ? &from
           : option == "--far-donors-dir" ? &donors_dir
           : option == "--far-size"       ? &size
           : option == "--far-replicas"   ? &replicas
           : option == "--far-least"      ? &least
                                          : nullptr;
  }
};

// Reads a size with a binary unit, as 4GiB, 4G or 4194304; 0: it is none.
unsigned long long ReadSize(const std::string& text) {
  char* unit = nullptr;
  const unsigned long long number = std::strtoull(text.c_str(), &unit, 10);
  const std::string rest = unit;
  constexpr char kUnits[] = "KMGT";
  if (text.empty() || text[0] < '0' || text[0] > '9') return 0;
  if (rest.empty()) return number;
  const char* found = std::strchr(kUnits, rest[0]);
  if (found == nullptr || (rest.size() > 1 && rest.substr(1) != "B" && rest.substr(1) != "iB")) {
    return 0;
  }
  const int shift = 10 * static_cast<int>(found - kUnits + 1);
  return number <= (~0ULL >> shift) ? number << shift : 0;
}

// Sets what the library for remote memory reads. Returns 0, or the exit status after a line on
// stderr.
int PrepareFar(const FarOptions& far, const std::string& library) {
  if (far.fraction.empty()) {
    if (far.donors.empty() && far.from.empty() && far.donors_dir.empty() && far.size.empty() &&
        far.replicas.empty() && far.least.empty())
      return 0;
    return Fail(kExitUsage, "options --far-* go with --far");
  }
  char* end = nullptr;
  const double fraction = std::strtod(far.fraction.c_str(), &end);
  if (*end != 0 || !(fraction > 0 && fraction <= 1)) {
    return Fail(kExitUsage, "--far is a fraction above 0, at most 1, not %s", far.fraction.c_str());
  }
  if (!far.from.empty() && far.from != "fleet")
    return Fail(kExitUsage, "--far-donors is fleet, not %s", far.from.c_str());
  if (far.donors.empty() == far.from.empty())
    return Fail(kExitUsage, "--far needs either --far-donor or --far-donors fleet");
  if (!far.donors_dir.empty() && far.from.empty())
    return Fail(kExitUsage, "--far-donors-dir goes with --far-donors");
  if (!IsFile(library)) {
    return Fail(kExitUsage, "there is no %s (package rocegw-memory)", library.c_str());
  }
  for (const auto& [option, value, variable] :
       {std::tuple{"--far-size", far.size, "ROCEGW_FAR_SIZE"},
        std::tuple{"--far-least", far.least, "ROCEGW_FAR_LEAST"}}) {
    unsetenv(variable);
    if (value.empty()) continue;
    const unsigned long long bytes = ReadSize(value);
    if (bytes == 0) return Fail(kExitUsage, "%s is a size, as 4GiB, not %s", option, value.c_str());
    if (variable == std::string("ROCEGW_FAR_LEAST") && bytes < kFewestFarLeast) {
      return Fail(kExitUsage, "--far-least is at least 64KiB, not %s", value.c_str());
    }
    setenv(variable, std::to_string(bytes).c_str(), 1);
  }
  if (!far.replicas.empty() && !IsNumber(far.replicas)) {
    return Fail(kExitUsage, "--far-replicas is a number, not %s", far.replicas.c_str());
  }
  setenv("ROCEGW_FAR", far.fraction.c_str(), 1);
  setenv("ROCEGW_FAR_DONORS", far.donors.c_str(), 1);
  const std::string& dir = far.donors_dir.empty() ? kDonorsDir : far.donors_dir;
  setenv("ROCEGW_FAR_DONORS_DIR", far.from.empty() ? "" : dir.c_str(), 1);
  setenv("ROCEGW_FAR_REPLICAS", far.replicas.empty() ? "1" : far.replicas.c_str(), 1);
  setenv("ROCEGW_FAR_REPORT", far.report ? "1" : "0", 1);
  return 0;
}

// Returns 0 if a gateway listens, else the errno.
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
    // Waits until the gateway has closed this connection, which must not count when the program
    // attaches.
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

// Retries until there is a gateway, or the time is over. 0 or the last errno.
int ConnectWithin(const std::string& path, long seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause(100);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  bool reported = false;
  for (;;) {
    const int error = TryConnect(path);
    // No socket, or one of a gateway that has ended. Other errors do not disappear by themselves.
    if ((error != ENOENT && error != ECONNREFUSED) || Clock::now() >= end) return error;
    if (!reported) {
      std::fprintf(stderr, "rocegw-run: no gateway at %s yet (%s); waiting for %ld s at most\n",
                   path.c_str(), std::strerror(error), seconds);
      reported = true;
    }
    std::this_thread::sleep_for(kPause);
  }
}

// Returns 0 if a gateway inside PROGRAM could bind its port in the same way, or the errno.
// `address`: empty for any.
int TryPort(const std::string& address) {
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_port = htons(kRocePort);
  const std::string mapped = "::ffff:" + address;
  const bool v4 = address.find(':') == std::string::npos;
  if (!address.empty() &&
      inet_pton(AF_INET6, v4 ? mapped.c_str() : address.c_str(), &name.sin6_addr) != 1) {
    return EINVAL;
  }
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;  // a kernel without IPv6: the gateway will report the error
  const int off = 0;
  setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
  const int error = bound ? 0 : errno;
  close(fd);
  return error;
}

int CannotHavePort(const std::string& address, int error) {
  const std::string where = address.empty() ? "" : " of " + address;
  if (error == EINVAL) return Fail(kExitUsage, "--address %s is no IP address", address.c_str());
  if (error == EADDRNOTAVAIL) {
    return Fail(kExitUsage, "%s is no address of this host; `ip address` lists them",
                address.c_str());
  }
  if (error != EADDRINUSE) {
    return Fail(kExitUsage, "UDP port %u%s: %s", unsigned{kRocePort}, where.c_str(),
                std::strerror(error));
  }
  return Fail(kExitUsage,
              "UDP port %u%s is taken, by a rocegwd or another program (`ss -lunp 'sport = :%u'` "
              "names it): stop it, leave out --in-process, or give each process --address with an "
              "address of its own",
              unsigned{kRocePort}, where.c_str(), unsigned{kRocePort});
}

int Run(int argc, char** argv) {
  std::string socket_path;
  std::string address;
  std::string library;
  std::string remap;
  std::string wait;
  bool drop_in = false;
  bool in_process = false;
  bool run_in_poll = false;
  bool placement = false;
  FarOptions far;
  std::string far_donor;
  int i = 1;
  for (; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--") {
      ++i;
      break;
    }
    if (option == "--help" || option == "-h") {
      if (std::fputs(kHelp, stdout) < 0 || std::fflush(stdout) != 0)
        return Fail(kExitUsage, "cannot write to standard output: %s", std::strerror(errno));
      return 0;
    }
    if (option == "--drop-in") {
      drop_in = true;
      continue;
    }
    if (option == "--in-process") {
      in_process = true;
      continue;
    }
    if (option == "--run-in-poll") {
      run_in_poll = true;
      continue;
    }
    if (option == "--placement") {
      placement = true;
      continue;
    }
    if (option == "--far-report") {
      far.report = true;
      continue;
    }
    std::string* value = option == "--socket"      ? &socket_path
                         : option == "--address"   ? &address
                         : option == "--library"   ? &library
                         : option == "--remap"     ? &remap
                         : option == "--wait"      ? &wait
                         : option == "--far-donor" ? &far_donor
                                                   : far.Value(option);
    if (value == nullptr && !option.empty() && option[0] == '-') {
      return Fail(kExitUsage, "no option %s; see rocegw-run --help", argv[i]);
    }
    if (value == nullptr) break;
    if (++i == argc) return Fail(kExitUsage, "%s needs a value", option.c_str());
    *value = argv[i];
    if (value == &far_donor) far.donors += (far.donors.empty() ? "" : ",") + far_donor;
  }
  if (!remap.empty() && remap != "auto" && remap != "always" && remap != "never") {
    return Fail(kExitUsage, "--remap is auto, always or never, not %s", remap.c_str());
  }
  if (i >= argc) return Fail(kExitUsage, "which program? See rocegw-run --help");
  if (!in_process && (run_in_poll || placement || !address.empty())) {
    return Fail(kExitUsage, "--address, --run-in-poll and --placement go with --in-process");
  }
  if (in_process && (!socket_path.empty() || !remap.empty() || !wait.empty())) {
    return Fail(kExitUsage,
                "--in-process has neither a socket, nor one to wait for, nor memory to remap");
  }
  if (in_process && !far.fraction.empty()) {
    return Fail(
        kExitUsage,
        "--far needs the daemon's gateway: with --in-process the gateway's own memory would "
        "be remote");
  }
  if (const char* variable = std::getenv("ROCEGW_WAIT"); wait.empty() && variable != nullptr)
    wait = variable;
  if (!wait.empty() && !IsNumber(wait))
    return Fail(kExitUsage, "--wait is a number of seconds, not %s", wait.c_str());

  if (socket_path.empty()) {
    const char* variable = std::getenv("ROCEGW_SOCKET");
    socket_path = variable != nullptr && *variable != 0 ? variable : ROCEGW_ATTACH_SOCKET;
  }
  if (library.empty()) library = FindLibrary();
  if (library.empty() || !IsFile(library)) {
    return Fail(kExitUsage,
                "librocegw-verbs.so is not beside this program; name it with --library");
  }
  // Programs may change their directory before they start others.
  char real_library[PATH_MAX];
  if (realpath(library.c_str(), real_library) != nullptr) library = real_library;
  const std::string pair = library.substr(0, library.rfind('/') + 1) + "rocegw-drop-in";
  if (drop_in && !IsFile(pair + "/libibverbs.so.1")) {
    return Fail(kExitUsage, "there is no %s/libibverbs.so.1", pair.c_str());
  }
  const std::string engine = library.substr(0, library.rfind('/') + 1) + "librocegw-engine.so";
  if (in_process && !IsFile(engine)) return Fail(kExitUsage, "there is no %s", engine.c_str());
  const std::string far_library = library.substr(0, library.rfind('/') + 1) + "librocegw-far.so";
  if (const int status = PrepareFar(far, far_library); status != 0) return status;
  const std::string program = FindProgram(argv[i]);
  struct stat s;
  if (program.empty() || stat(program.c_str(), &s) != 0) {
    return Fail(kExitNotFound, "%s: no such program", argv[i]);
  }
  if (geteuid() != 0 && (s.st_mode & (S_ISUID | S_ISGID)) != 0) {
    return Fail(kExitCannotRun,
                "%s is setuid or setgid: the system does not load libraries into it",
                program.c_str());
  }
  if (geteuid() != 0 && HasCapabilities(program)) {
    return Fail(
        kExitCannotRun,
        "%s has file capabilities (`getcap` shows them): the system does not load libraries "
        "into it; run a copy, which has none",
        program.c_str());
  }
  const char* const sanitizer = drop_in ? nullptr : FindSanitizer(program);
  if (sanitizer != nullptr) {
    return Fail(kExitCannotRun,
                "%s is built with %s, which works with no preloaded library: use --drop-in",
                program.c_str(), sanitizer);
  }
  const std::string loader = FindLoader(program);
  if (loader == "none") {
    return Fail(kExitCannotRun, "%s is linked statically: no library can be loaded into it",
                program.c_str());
  }
  if (loader.find("/ld-musl-") != std::string::npos) {
    return Fail(kExitCannotRun, "%s is made for the C library musl: the library needs glibc",
                program.c_str());
  }
  if (in_process) {
    if (const int error = TryPort(address); error != 0) return CannotHavePort(address, error);
  } else if (const int error =
                 ConnectWithin(socket_path, wait.empty() ? 0 : std::atol(wait.c_str()));
             error != 0) {
    if (error == EACCES || error == EPERM) {
      return Fail(kExitUsage,
                  "the gateway at %s cannot be reached by user %u (%s): the pool's "
                  "attach.socket_mode and attach.socket_owner say who may use its sockets",
                  socket_path.c_str(), static_cast<unsigned>(geteuid()), std::strerror(error));
    }
    return Fail(kExitUsage, "no gateway at %s (%s): is rocegwd running here, and may you use it?",
                socket_path.c_str(), std::strerror(error));
  }
  // Only one of the two variables, even if another rocegw-run started this one.
  if (drop_in) {
    Leave("LD_PRELOAD", library);
    PutFirst("LD_LIBRARY_PATH", pair);
  } else {
    PutFirst("LD_PRELOAD", library);
  }
  if (in_process) {
    setenv("ROCEGW_IN_PROCESS", "1", 1);
    setenv("ROCEGW_ADDRESS", address.c_str(), 1);
    setenv("ROCEGW_RUN_IN_POLL", run_in_poll ? "1" : "0", 1);
    setenv("ROCEGW_PLACEMENT", placement ? "1" : "0", 1);
    setenv("ROCEGW_RUN", "1", 1);  // a gateway that cannot start reports the reason
  } else {
    unsetenv("ROCEGW_IN_PROCESS");
    setenv("ROCEGW_SOCKET", socket_path.c_str(), 1);
  }
  if (!remap.empty()) setenv("ROCEGW_REMAP", remap.c_str(), 1);
  if (!far.fraction.empty()) PutFirst("LD_PRELOAD", far_library);
  execv(program.c_str(), argv + i);
  return Fail(kExitCannotRun, "cannot run %s: %s", program.c_str(), std::strerror(errno));
}

}  // namespace

int main(int argc, char** argv) { return Run(argc, argv); }
