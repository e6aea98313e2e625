// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/sysfs_tree.h"

#include <endian.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "gateway/client/device/device.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/real.h"
#include "gateway/client/process/report.h"

namespace rocegw::client {

namespace {

constexpr size_t kPathSize = 256;  // size of ibv_device's own paths

// A root that a session has had. Neither changed nor freed: programs keep the text, and other
// threads read it without the lock. There are as many as gateways with different trees were met.
struct Root {
  Root* next;
  char path[kPathSize];
};

SpinLock g_lock;
Root* g_roots = nullptr;
const Root* g_current = nullptr;
uint32_t g_current_session = 0;  // 0: unknown yet

bool IsDirectory(const char* path) {
  const long fd = RawOpen(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) RawClose(static_cast<int>(fd));
  return fd >= 0;
}

// Writer of one device's tree. A failed file is left out: programs do without most of them.
class TreeWriter {
 public:
  // `root` must outlive the writer.
  explicit TreeWriter(const char* root) : root_(root) {}

  [[gnu::format(printf, 2, 3)]] void Directory(const char* format, ...) {
    char path[kPathSize];
    va_list arguments;
    va_start(arguments, format);
    Join(path, format, arguments);
    va_end(arguments);
    for (char* slash = path + strlen(root_) + 1; *slash != '\0'; ++slash) {
      if (*slash != '/') continue;
      *slash = '\0';
      RawSyscall(SYS_mkdirat, AT_FDCWD, path, 0755);
      *slash = '/';
    }
    RawSyscall(SYS_mkdirat, AT_FDCWD, path, 0755);
  }

  // Replaces the file by rename: readers see the old content or the new one.
  [[gnu::format(printf, 3, 4)]] void File(const char* content, const char* format, ...) {
    char path[kPathSize];
    va_list arguments;
    va_start(arguments, format);
    Join(path, format, arguments);
    va_end(arguments);
    char fresh[kPathSize + 16];
    snprintf(fresh, sizeof(fresh), "%s.%d", path, static_cast<int>(getpid()));
    const long fd = RawSyscall(SYS_openat, AT_FDCWD, fresh,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) return;
    RawSyscall(SYS_write, static_cast<int>(fd), content, strlen(content));
    RawClose(static_cast<int>(fd));
    RawSyscall(SYS_renameat, AT_FDCWD, fresh, AT_FDCWD, path);
  }

 private:
  void Join(char* path, const char* format, va_list arguments) {
    const int head = snprintf(path, kPathSize, "%s/", root_);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): started by the callers
    vsnprintf(path + head, kPathSize - static_cast<size_t>(head), format, arguments);
  }

  const char* root_;
};

struct GidFiles {
  TreeWriter* writer;
  const rocegw_device_reply* device;
};

bool WriteGid(const rocegw_gid_entry& entry, void* context) {
  auto* files = static_cast<GidFiles*>(context);
  const char* device = files->device->name;
  char text[64];
  int used = 0;
  for (int i = 0; i < 16; i += 2) {
    used += snprintf(text + used, sizeof(text) - static_cast<size_t>(used), "%s%02x%02x",
                     i != 0 ? ":" : "", entry.gid[i], entry.gid[i + 1]);
  }
  snprintf(text + used, sizeof(text) - static_cast<size_t>(used), "\n");
  files->writer->File(text, "class/infiniband/%s/ports/1/gids/%u", device, entry.index);
  files->writer->File("RoCE v2\n", "class/infiniband/%s/ports/1/gid_attrs/types/%u", device,
                      entry.index);
  snprintf(text, sizeof(text), "%.15s\n", files->device->interface);
  files->writer->File(text, "class/infiniband/%s/ports/1/gid_attrs/ndevs/%u", device, entry.index);
  return true;
}

void WriteDevice(Session* session, uint32_t index, TreeWriter* writer) {
  rocegw_device_reply device;
  if (QueryDevice(session, index, &device) != 0) return;
  const char* name = device.name;
  writer->Directory("class/infiniband/%s/ports/1/gids", name);
  writer->Directory("class/infiniband/%s/ports/1/gid_attrs/types", name);
  writer->Directory("class/infiniband/%s/ports/1/gid_attrs/ndevs", name);
  writer->Directory("class/infiniband/%s/ports/1/pkeys", name);
  writer->Directory("class/infiniband/%s/device/net/%s", name, device.interface);
  writer->Directory("class/infiniband_verbs/uverbs_%s", name);
  const uint64_t guid = be64toh(device.node_guid);
  char text[96];
  snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x\n", static_cast<unsigned>(guid >> 48) & 0xffff,
           static_cast<unsigned>(guid >> 32) & 0xffff, static_cast<unsigned>(guid >> 16) & 0xffff,
           static_cast<unsigned>(guid) & 0xffff);
  writer->File(text, "class/infiniband/%s/node_guid", name);
  writer->File(text, "class/infiniband/%s/sys_image_guid", name);
  writer->File("1: CA\n", "class/infiniband/%s/node_type", name);
  writer->File("rocegw\n", "class/infiniband/%s/hca_type", name);
  writer->File("rocegw\n", "class/infiniband/%s/board_id", name);
  snprintf(text, sizeof(text), "%s\n", device.firmware);
  writer->File(text, "class/infiniband/%s/fw_ver", name);
  writer->File("0\n", "class/infiniband/%s/hw_rev", name);
  snprintf(text, sizeof(text), "%s\n", name);
  writer->File(text, "class/infiniband/%s/node_desc", name);
  writer->File("-1\n", "class/infiniband/%s/device/numa_node", name);
  const bool active = device.port_state == IBV_PORT_ACTIVE;
  writer->File(active ? "4: ACTIVE\n" : "1: DOWN\n", "class/infiniband/%s/ports/1/state", name);
  writer->File(active ? "5: LinkUp\n" : "3: Disabled\n", "class/infiniband/%s/ports/1/phys_state",
               name);
  writer->File("Ethernet\n", "class/infiniband/%s/ports/1/link_layer", name);
  writer->File("0x0\n", "class/infiniband/%s/ports/1/lid", name);
  writer->File("0\n", "class/infiniband/%s/ports/1/lid_mask_count", name);
  writer->File("0x0\n", "class/infiniband/%s/ports/1/sm_lid", name);
  writer->File("0\n", "class/infiniband/%s/ports/1/sm_sl", name);
  writer->File("0x00010000\n", "class/infiniband/%s/ports/1/cap_mask", name);
  writer->File("10 Gb/sec (4X)\n", "class/infiniband/%s/ports/1/rate", name);
  writer->File("0xffff\n", "class/infiniband/%s/ports/1/pkeys/0", name);
  snprintf(text, sizeof(text), "%s\n", name);
  writer->File(text, "class/infiniband_verbs/uverbs_%s/ibdev", name);
  writer->File("1\n", "class/infiniband_verbs/uverbs_%s/abi_version", name);
  writer->File("6\n", "class/infiniband_verbs/abi_version");
  GidFiles files = {writer, &device};
  ForEachGid(session, index, 0, &WriteGid, &files);
}

// Makes one directory per user and gateway. Returns false if its name is taken by a file that is
// not ours.
bool MakePrivateDirectory(char* path, size_t size) {
  uint32_t hash = 2166136261u;
  for (const char* c = AttachPath(); *c != '\0'; ++c) {
    hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
  }
  snprintf(path, size, "/tmp/rocegw-sysfs-%u-%08x", static_cast<unsigned>(geteuid()), hash);
  RawSyscall(SYS_mkdirat, AT_FDCWD, path, 0755);
  const long fd = RawOpen(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  struct statx about = {};
  const long result = RawSyscall(SYS_statx, static_cast<int>(fd), "", AT_EMPTY_PATH,
                                 STATX_UID | STATX_MODE, &about);
  RawClose(static_cast<int>(fd));
  return result == 0 && about.stx_uid == geteuid() && (about.stx_mode & 022) == 0;
}

void FindRoot(Session* session, char* root, size_t size) {
  const char* rendered = session->welcome().sysfs_root;
  char classes[kPathSize];
  snprintf(classes, sizeof(classes), "%s/class/infiniband", rendered);
  if (rendered[0] == '/' && IsDirectory(classes)) {
    snprintf(root, size, "%s", rendered);
    return;
  }
  if (!MakePrivateDirectory(root, size)) {
    Debug("no sysfs view: the gateway's is not visible here and %s cannot be used", root);
    snprintf(root, size, "/sys");
    return;
  }
  TreeWriter writer(root);
  for (uint32_t i = 0; i < session->welcome().device_count; ++i) WriteDevice(session, i, &writer);
}

// Returns the root with that text; nullptr if there is no memory for a new one.
const Root* FindOrMakeRoot(const char* path) {
  for (const Root* root = g_roots; root != nullptr; root = root->next) {
    if (strcmp(root->path, path) == 0) return root;
  }
  auto* const root = MakeObject<Root>();
  if (root == nullptr) return nullptr;
  snprintf(root->path, sizeof(root->path), "%s", path);
  root->next = g_roots;
  g_roots = root;
  return root;
}

}  // namespace

const char* SysfsRoot(Session* session) {
  // Without the lock while it asks the daemon: a second thread does the same work with the same
  // result.
  {
    SpinGuard guard(g_lock);
    if (g_current_session == session->number()) return g_current->path;
  }
  char path[kPathSize];
  FindRoot(session, path, sizeof(path));
  SpinGuard guard(g_lock);
  const Root* const root = FindOrMakeRoot(path);
  if (root == nullptr) return "/sys";
  g_current = root;
  g_current_session = session->number();
  return root->path;
}

void LockSysfsRoots() { g_lock.Lock(); }
void UnlockSysfsRoots() { g_lock.Unlock(); }
void ResetSysfsRootsLock() { g_lock.Reset(); }

bool KernelHasRdma() { return IsDirectory("/sys/class/infiniband"); }

}  // namespace rocegw::client

using rocegw::client::KernelHasRdma;
using rocegw::client::RawClose;
using rocegw::client::RawOpen;
using rocegw::client::RawRead;
using rocegw::client::Session;

// These two are exported by libibverbs but declared only in its driver header.
ROCEGW_EXPORT const char* ibv_get_sysfs_path() {
  if (!KernelHasRdma()) {
    if (Session* session = Session::Acquire()) {
      const char* root = rocegw::client::SysfsRoot(session);
      session->Release();
      return root;
    }
  }
  const auto real = ROCEGW_REAL(ibv_get_sysfs_path);
  return real != nullptr ? real() : "/sys";
}

// Reads the first line of a small file without its newline; returns its length or -1. Paths of our
// devices lead to our tree.
ROCEGW_EXPORT int ibv_read_sysfs_file(const char* directory, const char* file, char* to,
                                      size_t size) {
  char path[2 * rocegw::client::kPathSize];
  const int length = snprintf(path, sizeof(path), "%s/%s", directory, file);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path) || size == 0) return -1;
  const int fd = static_cast<int>(RawOpen(path, O_RDONLY | O_CLOEXEC));
  if (fd < 0) {
    errno = -fd;
    return -1;
  }
  long got = RawRead(fd, to, size);
  RawClose(fd);
  if (got < 0) {
    errno = static_cast<int>(-got);
    return -1;
  }
  if (got > 0 && to[got - 1] == '\n') to[--got] = '\0';
  if (static_cast<size_t>(got) < size) to[got] = '\0';
  return static_cast<int>(got);
}
