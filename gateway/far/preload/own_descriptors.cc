// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/preload/own_descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gateway/far/preload/next.h"

namespace rocegw::far {
namespace {

constexpr int kMost = 1 << 16;
constexpr uint64_t kNotOwn = 0;
constexpr uint64_t kExactly = 1;  // until the library closes it

// By number: one of the above, or what identifies the file. Zero, without a constructor.
std::atomic<uint64_t> g_own[kMost];
std::atomic<int> g_behind{0};  // all numbers from there on are not own

// Text of the link of /proc, which names the file; of no use for comparing anonymous ones.
size_t ReadLink(int fd, char* text, size_t most) {
  char link[32];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t got = readlink(link, text, most - 1);
  const size_t length = got > 0 ? static_cast<size_t>(got) : 0;
  text[length] = 0;
  return length;
}

// FNV-1a. The result is neither kNotOwn nor kExactly.
uint64_t Identify(int fd) {
  const int before = errno;
  char text[256];
  const size_t length = ReadLink(fd, text, sizeof text);
  uint64_t hash = 0xCBF29CE484222325;
  for (size_t i = 0; i < length; i++) {
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001B3;
  }
  errno = before;
  return hash | 2;
}

void Record(int fd, uint64_t identity) {
  if (fd < 0 || fd >= kMost) return;
  g_own[fd] = identity;
  int behind = g_behind.load();
  while (behind <= fd && !g_behind.compare_exchange_weak(behind, fd + 1)) {
  }
}

bool IsCertainlyOfVerbs(int fd) {
  char text[256];
  ReadLink(fd, text, sizeof text);
  if (std::strncmp(text, "/dev/infiniband/", 16) == 0) return true;
  sockaddr_un peer{};
  socklen_t size = sizeof peer;
  const char* gateway = secure_getenv("ROCEGW_SOCKET");
  return gateway != nullptr && getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
         peer.sun_family == AF_UNIX &&
         std::strncmp(peer.sun_path, gateway, sizeof peer.sun_path) == 0;
}

size_t CountThreads() {
  size_t threads = 0;
  DIR* directory = opendir("/proc/self/task");
  if (directory == nullptr) return 0;
  while (const dirent* entry = readdir(directory)) threads += entry->d_name[0] != '.' ? 1 : 0;
  closedir(directory);
  return threads;
}

}  // namespace

void OwnDescriptor(int fd) { Record(fd, kExactly); }

void DisownDescriptor(int fd) {
  if (fd >= 0 && fd < kMost) g_own[fd] = kNotOwn;
}

bool IsOwnDescriptor(int fd) {
  if (fd < 0 || fd >= g_behind.load()) return false;
  uint64_t identity = g_own[fd].load();
  if (identity <= kExactly) return identity == kExactly;
  if (identity == Identify(fd)) return true;
  // The number leads to another file now.
  g_own[fd].compare_exchange_strong(identity, kNotOwn);
  return false;
}

int NextOwnDescriptor(int from) {
  for (int fd = from; fd < g_behind.load(); fd++) {
    if (IsOwnDescriptor(fd)) return fd;
  }
  return -1;
}

void DisownAllDescriptors() {
  const int behind = g_behind.exchange(0);
  for (int fd = 0; fd < behind; fd++) g_own[fd] = kNotOwn;
}

std::vector<int> OpenDescriptors() {
  std::vector<int> found;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != dirfd(directory)) found.push_back(fd);
  }
  closedir(directory);
  std::sort(found.begin(), found.end());
  return found;
}

void OwnNewDescriptors(const std::vector<int>& before, bool alone) {
  for (const int fd : OpenDescriptors()) {
    if (std::binary_search(before.begin(), before.end(), fd) || IsOwnDescriptor(fd)) continue;
    if (alone || IsCertainlyOfVerbs(fd)) Record(fd, Identify(fd));
  }
}

bool IsAlone() { return CountThreads() == 1; }

LowNumbersTaken::LowNumbersTaken() {
  const int first = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (first < 0) return;
  for (int fd = first; fd >= 0 && fd < kLowest && count_ < kLowest;) {
    taken_[count_++] = fd;
    fd = fcntl(first, F_DUPFD_CLOEXEC, 0);
    if (fd >= kLowest) Next().close(fd);
  }
  if (first >= kLowest) Next().close(first);
}

LowNumbersTaken::~LowNumbersTaken() {
  for (int i = 0; i < count_; i++) Next().close(taken_[i]);
}

}  // namespace rocegw::far

// Not exported: only calls of this library come here.
extern "C" {

int eventfd(unsigned count, int flags) noexcept {
  const int fd = rocegw::far::Next().eventfd(count, flags);
  if (fd >= 0) rocegw::far::OwnDescriptor(fd);
  return fd;
}

rdma_event_channel* rdma_create_event_channel() {
  rdma_event_channel* channel = rocegw::far::Next().rdma_create_event_channel();
  if (channel != nullptr) rocegw::far::OwnDescriptor(channel->fd);
  return channel;
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  rocegw::far::DisownDescriptor(channel->fd);
  rocegw::far::Next().rdma_destroy_event_channel(channel);
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  ibv_comp_channel* channel = rocegw::far::Next().ibv_create_comp_channel(context);
  if (channel != nullptr) rocegw::far::OwnDescriptor(channel->fd);
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  const int fd = channel->fd;
  rocegw::far::DisownDescriptor(fd);
  const int error = rocegw::far::Next().ibv_destroy_comp_channel(channel);
  if (error != 0) rocegw::far::OwnDescriptor(fd);
  return error;
}

}  // extern "C"
