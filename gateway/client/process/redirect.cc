// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/redirect.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gateway/client/device/device.h"
#include "gateway/client/process/environment.h"
#include "gateway/client/process/sysfs_tree.h"
#include "gateway/client/rings/monotonic_time.h"
#include "gateway/client/rings/spinlock.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

namespace {

constexpr size_t kLongestText = 256;
constexpr char kSys[] = "/sys";
constexpr char kClass[] = "/sys/class/infiniband";
constexpr char kVerbsClass[] = "/sys/class/infiniband_verbs";
constexpr char kDeviceFiles[] = "/dev/infiniband/";

// Returns the part behind the prefix, nullptr if the path does not begin with it. A prefix ends at
// a component.
const char* Behind(const char* path, const char* prefix) {
  const size_t length = strlen(prefix);
  if (strncmp(path, prefix, length) != 0) return nullptr;
  const char* rest = path + length;
  return *rest == '\0' || *rest == '/' || prefix[length - 1] == '/' ? rest : nullptr;
}

bool IsName(const char* component, const char* name) {
  const size_t length = strlen(name);
  return strncmp(component, name, length) == 0 &&
         (component[length] == '\0' || component[length] == '/');
}

// Names of a gateway's devices, and their tree.
struct View {
  char attach_path[kLongestText];  // gateway of this data
  char root[kLongestText];
  int count;
  char name[kMaxDevices][sizeof(ibv_device::name)];
  char file[kMaxDevices][sizeof(ibv_device::dev_name)];
};

// Properties of a path.
struct Answer {
  bool ours;  // the component names a device of the gateway, or its device file
  char root[kLongestText];
};

// Lifetime of the cached data. A program that opens many files queries the gateway once in this
// time; without objects of its own it makes one session for all of them.
constexpr int64_t kRemembered = 1'000'000'000;  // ns

View g_view;
int64_t g_view_until = 0;  // CLOCK_MONOTONIC in ns
SpinLock g_view_lock;      // only tried: in a forked child its holder may not exist

bool Recall(const char* component, Answer* answer) {
  if (!g_view_lock.TryLock()) return false;
  const bool known = MonotonicNs() < g_view_until && strcmp(g_view.attach_path, AttachPath()) == 0;
  if (known) {
    answer->ours = false;
    for (int i = 0; i < g_view.count; ++i)
      answer->ours |= IsName(component, g_view.name[i]) || IsName(component, g_view.file[i]);
    memcpy(answer->root, g_view.root, sizeof(answer->root));
  }
  g_view_lock.Unlock();
  return known;
}

void Remember(Device* const* devices, int count, const char* root) {
  if (strlen(AttachPath()) >= kLongestText || !g_view_lock.TryLock()) return;
  snprintf(g_view.attach_path, sizeof(g_view.attach_path), "%s", AttachPath());
  snprintf(g_view.root, sizeof(g_view.root), "%s", root);
  g_view.count = count;
  for (int i = 0; i < count; ++i) {
    memcpy(g_view.name[i], devices[i]->ibv.name, sizeof(g_view.name[i]));
    memcpy(g_view.file[i], devices[i]->ibv.dev_name, sizeof(g_view.file[i]));
  }
  g_view_until = MonotonicNs() + kRemembered;
  g_view_lock.Unlock();
}

// Returns false if no gateway can be reached.
bool Look(const char* component, Answer* answer) {
  const char* off = Setting("ROCEGW_DISABLE");
  if (off != nullptr && off[0] == '1') return false;
  if (Recall(component, answer)) return true;
  Session* session = Session::Acquire();
  if (session == nullptr) return false;
  Device* devices[kMaxDevices] = {};
  const int count = ListDevices(session, devices);
  answer->ours = false;
  for (int i = 0; i < count; ++i) {
    answer->ours |=
        IsName(component, devices[i]->ibv.name) || IsName(component, devices[i]->ibv.dev_name);
  }
  snprintf(answer->root, sizeof(answer->root), "%s", SysfsRoot(session));
  session->Release();
  if (count > 0) Remember(devices, count, answer->root);
  return true;
}

const char* Decide(const char* path, char* buffer, size_t size) {
  Answer answer;
  if (const char* file = Behind(path, kDeviceFiles))
    return Look(file, &answer) && answer.ours ? "/dev/null" : path;
  const char* rest = Behind(path, kClass);
  if (rest == nullptr) rest = Behind(path, kVerbsClass);
  while (*rest == '/') ++rest;
  if (!Look(rest, &answer)) return path;
  // If the kernel has devices, the directories are the kernel's, and only our devices' entries are
  // ours.
  if (KernelHasRdma() && !(*rest != '\0' && answer.ours)) return path;
  const int length = snprintf(buffer, size, "%s%s", answer.root, path + strlen(kSys));
  return length > 0 && static_cast<size_t>(length) < size ? buffer : path;
}

}  // namespace

const char* RedirectPath(const char* path, char* buffer, size_t size) {
  if (path == nullptr || path[0] != '/' || (path[1] != 's' && path[1] != 'd')) return path;
  if (Behind(path, kClass) == nullptr && Behind(path, kVerbsClass) == nullptr &&
      Behind(path, kDeviceFiles) == nullptr) {
    return path;
  }
  const int saved = errno;
  path = Decide(path, buffer, size);
  errno = saved;
  return path;
}

}  // namespace rocegw::client
