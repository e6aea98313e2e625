// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/hostile/unanswered_files.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace rocegw::bench {
namespace {

constexpr char kName[] = "file";
constexpr char kAnsweredName[] = "answered";
constexpr uint64_t kNode = 2;
constexpr uint64_t kAnsweredNode = 3;
constexpr size_t kPage = 4096;
constexpr size_t kLongestRequest = 1 << 20;
// Seconds for which the kernel keeps what it was told.
constexpr uint64_t kForEver = 1u << 30;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "hostile: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void WriteFile(const char* path, const std::string& text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    Fail(path);
  close(file);
}

template <typename Body>
void Answer(int device, const fuse_in_header& request, const Body& body) {
  fuse_out_header header{};
  header.len = sizeof header + sizeof body;
  header.unique = request.unique;
  const iovec parts[] = {{&header, sizeof header}, {const_cast<Body*>(&body), sizeof body}};
  (void)!writev(device, parts, 2);
}

// error: an errno value, or 0.
void Acknowledge(int device, const fuse_in_header& request, int error) {
  fuse_out_header header{};
  header.len = sizeof header;
  header.error = -error;
  header.unique = request.unique;
  (void)!write(device, &header, sizeof header);
}

}  // namespace

UnansweredFiles::UnansweredFiles() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  char name[] = "/tmp/rocegw-unanswered-XXXXXX";
  if (mkdtemp(name) == nullptr) Fail("mkdtemp");
  directory_ = name;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) Fail("unshare");
  WriteFile("/proc/self/setgroups", "deny");
  WriteFile("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
  WriteFile("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  device_ = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device_ < 0) Fail("/dev/fuse");
  const std::string options =
      "fd=" + std::to_string(device_) + ",rootmode=40000,user_id=0,group_id=0";
  if (mount("hostile", name, "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    Fail("mount of fuse");
  server_ = std::thread(&UnansweredFiles::Serve, this);
}

int UnansweredFiles::Open() const { return OpenNamed(kName); }

int UnansweredFiles::OpenAnswered() const { return OpenNamed(kAnsweredName); }

void UnansweredFiles::WriteAnswered() const {
  // The kernel keeps the bytes until the file is closed, which waits: it stays open.
  const int writer = OpenAnswered();
  const std::vector<char> page(kPage, 'x');
  if (write(writer, page.data(), page.size()) != static_cast<ssize_t>(page.size())) Fail("write");
}

int UnansweredFiles::OpenNamed(const char* name) const {
  return open((directory_ + "/" + name).c_str(), O_RDWR | O_CLOEXEC);
}

void UnansweredFiles::Serve() const {
  std::vector<char> room(kLongestRequest);
  for (;;) {
    const ssize_t length = read(device_, room.data(), room.size());
    fuse_in_header request;
    if (length < static_cast<ssize_t>(sizeof request)) return;
    std::memcpy(&request, room.data(), sizeof request);
    switch (request.opcode) {
      case FUSE_INIT: {
        fuse_init_out init{};
        init.major = FUSE_KERNEL_VERSION;
        init.minor = FUSE_KERNEL_MINOR_VERSION;
        init.max_write = kPage;
        init.flags = FUSE_WRITEBACK_CACHE;
        Answer(device_, request, init);
        break;
      }
      case FUSE_LOOKUP: {
        fuse_entry_out entry{};
        const char* const name = room.data() + sizeof request;
        entry.nodeid = std::strcmp(name, kAnsweredName) == 0 ? kAnsweredNode : kNode;
        entry.entry_valid = entry.attr_valid = kForEver;
        entry.attr.ino = entry.nodeid;
        entry.attr.mode = S_IFREG | 0666;
        entry.attr.nlink = 1;
        Answer(device_, request, entry);
        break;
      }
      case FUSE_OPEN:
        Answer(device_, request, fuse_open_out{});
        break;
      case FUSE_FLUSH:
        if (request.nodeid == kAnsweredNode) Acknowledge(device_, request, 0);
        break;
      case FUSE_GETXATTR:  // a write asks before
        Acknowledge(device_, request, ENOSYS);
        break;
      default:
        break;
    }
  }
}

}  // namespace rocegw::bench
