// SPDX-License-Identifier: Apache-2.0
// State of the fake drivers of GPUs (fake_cuda.cc, fake_memory.cc).
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/fake_cuda/fake_cuda.h"

#define FAKE extern "C" __attribute__((visibility("default")))
#ifdef FAKE_HIP
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif

// Functions of the leak sanitizer, where the program has it.
extern "C" void __lsan_disable() __attribute__((weak));
extern "C" void __lsan_enable() __attribute__((weak));

namespace rocegw::fake_cuda {

// A driver's objects are not the program's: what a lost device keeps is no leak.
struct NoLeaks {
  NoLeaks() {
    if (__lsan_disable != nullptr) __lsan_disable();
  }
  ~NoLeaks() {
    if (__lsan_enable != nullptr) __lsan_enable();
  }
};

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kInvalidContext = 201;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;
constexpr int kContextIsDestroyed = 709;
constexpr int kLaunchFailed = 719;
constexpr int kNoFile = 999;
constexpr int kDevices = 2;
constexpr size_t kGranularity = size_t{2} << 20;
constexpr char kFileName[] = "fake-gpu-memory";

struct Handle {  // the first bytes of an IPC handle
  int32_t process;
  int32_t descriptor;
  uint64_t length;
};

// Physical memory: of an allocation, or of cuMemCreate.
struct Physical {
  int descriptor = -1;
  uint64_t length = 0;
  bool exportable = false;
  ~Physical() { close(descriptor); }
};

struct Context {
  int device;
  bool failed = false;
  std::set<void*> pinned;
};

struct Mapping {
  std::shared_ptr<Physical> memory;
  uint64_t length = 0;
  int device = 0;
  Context* context = nullptr;  // nullptr: of no context
  int32_t exporter = 0;        // process of the handle that it was opened by
  bool of_create = false;      // cuMemCreate's
  bool reachable = true;       // cuMemSetAccess was called, where needed
};

struct Copy {
  bool to_device;
  uint64_t device;
  uint8_t* host;
  size_t length;
};

struct Stream {
  Context* context = nullptr;
  std::vector<Copy> copies;
};

struct Event {
  Stream* stream = nullptr;
  int waits = 0;  // "not ready" still to be said; -1: for ever
};

inline std::mutex g_mutex;
inline std::map<uint64_t, Mapping> g_mappings;                    // by address
inline std::map<uint64_t, uint64_t> g_reserved;                   // address, length
inline std::map<uint64_t, uint64_t> g_managed;                    // address, length
inline std::map<uint64_t, std::shared_ptr<Physical>> g_physical;  // by handle
inline uint64_t g_next_handle = 1;
inline std::set<Context*> g_contexts;
inline Context* g_primary[kDevices];
inline thread_local std::vector<Context*> g_current;
inline int g_fail_result = 0;
inline int g_fail_after = -1;
inline int g_waits = 3;
inline bool g_lost = false;
inline FakeCudaCounts g_counts;
inline int g_file = -1;  // the devices' file
inline ino_t g_inode = 0;

inline std::pair<const uint64_t, Mapping>* Find(uint64_t address, size_t length) {
  auto next = g_mappings.upper_bound(address);
  if (next == g_mappings.begin()) return nullptr;
  --next;
  const uint64_t offset = address - next->first;
  return offset < next->second.length && length <= next->second.length - offset ? &*next : nullptr;
}

inline bool IsManaged(uint64_t address) {
  auto next = g_managed.upper_bound(address);
  return next != g_managed.begin() && address - std::prev(next)->first < std::prev(next)->second;
}

inline bool HasFile() {
  struct stat file {};
  return fstat(g_file, &file) == 0 && file.st_ino == g_inode;
}

inline int Usable(Context* context) {
  if (!HasFile()) return kNoFile;
  if (context == nullptr) return kInvalidContext;
  if (!g_contexts.contains(context)) return kContextIsDestroyed;
  if (g_lost) context->failed = true;
  return context->failed ? kLaunchFailed : kSuccess;
}
inline int Usable() { return Usable(g_current.empty() ? nullptr : g_current.back()); }

// Unmaps and forgets a mapping.
inline void Drop(std::map<uint64_t, Mapping>::iterator mapping) {
  if (mapping->second.exporter != 0) --g_counts.opened;
  if (!mapping->second.of_create) {
    munmap(reinterpret_cast<void*>(mapping->first), mapping->second.length);
  }
  g_mappings.erase(mapping);
}

}  // namespace rocegw::fake_cuda
