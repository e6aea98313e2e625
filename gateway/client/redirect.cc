// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/redirect.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "gateway/client/device.h"
#include "gateway/client/session.h"
#include "gateway/client/sysfs_tree.h"

namespace rocegw::client {

namespace {

constexpr char kSys[] = "/sys";
constexpr char kClass[] = "/sys/class/infiniband";
constexpr char kVerbsClass[] = "/sys/class/infiniband_verbs";
constexpr char kDeviceFiles[] = "/dev/infiniband/";

// What follows the prefix, nullptr when the path does not begin with it. A prefix is a whole
// component.
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

// True when the first component is the name of one of our devices, or of its device file.
bool NamesOurDevice(Session* session, const char* component) {
  Device* devices[kMaxDevices] = {};
  const int count = ListDevices(session, devices);
  for (int i = 0; i < count; ++i) {
    if (IsName(component, devices[i]->ibv.name) || IsName(component, devices[i]->ibv.dev_name)) {
      return true;
    }
  }
  return false;
}

const char* Decide(Session* session, const char* path, char* buffer, size_t size) {
  if (const char* file = Behind(path, kDeviceFiles)) {
    return NamesOurDevice(session, file) ? "/dev/null" : path;
  }
  const char* rest = Behind(path, kClass);
  if (rest == nullptr) rest = Behind(path, kVerbsClass);
  while (*rest == '/') ++rest;
  // Where the kernel has devices of its own the directories are the kernel's, and only what is in
  // ours is ours.
  if (KernelHasRdma() && !(*rest != '\0' && NamesOurDevice(session, rest))) return path;
  const int length = snprintf(buffer, size, "%s%s", SysfsRoot(session), path + strlen(kSys));
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
  Session* session = Session::Acquire();
  if (session != nullptr) {
    path = Decide(session, path, buffer, size);
    session->Release();
  }
  errno = saved;
  return path;
}

}  // namespace rocegw::client
