// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/device/device.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gateway/client/process/real.h"
#include "gateway/client/process/report.h"
#include "gateway/client/process/sysfs_tree.h"

namespace rocegw::client {

namespace {

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Device* g_devices[kMaxDevices];
uint32_t g_device_count = 0;

template <size_t kSize>
void CopyText(char (&to)[kSize], const char* from, size_t limit) {
  const size_t length = strnlen(from, limit < kSize ? limit : kSize - 1);
  memcpy(to, from, length < kSize ? length : kSize - 1);
  to[length < kSize ? length : kSize - 1] = '\0';
}

Device* FindOrMake(const char* name) {
  for (uint32_t i = 0; i < g_device_count; ++i) {
    if (strcmp(g_devices[i]->ibv.name, name) == 0) return g_devices[i];
  }
  if (g_device_count == kMaxDevices) return nullptr;
  auto* device = MakeObject<Device>();
  if (device == nullptr) return nullptr;
  device->ibv.node_type = IBV_NODE_CA;
  device->ibv.transport_type = IBV_TRANSPORT_IB;
  CopyText(device->ibv.name, name, sizeof(device->ibv.name) - 1);
  snprintf(device->ibv.dev_name, sizeof(device->ibv.dev_name), "uverbs_%.50s", name);
  g_devices[g_device_count++] = device;
  return device;
}

// Header in front of the array that a program gets.
struct DeviceList {
  Session* session;  // session of the devices, held until the list is freed; or nullptr
  ibv_device** real;
  ibv_device* entry[];
};

DeviceList* ListOf(ibv_device** entries) {
  return reinterpret_cast<DeviceList*>(reinterpret_cast<uint8_t*>(entries) -
                                       offsetof(DeviceList, entry));
}

}  // namespace

int QueryDevice(Session* session, uint32_t index, rocegw_device_reply* reply) {
  rocegw_query_device request = {};
  request.device = index;
  const int error = session->Call(ROCEGW_MSG_QUERY_DEVICE, &request, reply);
  reply->name[sizeof(reply->name) - 1] = '\0';
  reply->interface[sizeof(reply->interface) - 1] = '\0';
  reply->firmware[sizeof(reply->firmware) - 1] = '\0';
  return error;
}

namespace {

// Other threads may read the device meanwhile, so unchanged members are not written.
void Update(const char* root, uint32_t index, const rocegw_device_reply& reply, Device* device) {
  if (device->index != index) device->index = index;
  if (device->guid != reply.node_guid) device->guid = reply.node_guid;
  char path[sizeof(device->ibv.dev_path)];
  snprintf(path, sizeof(path), "%s/class/infiniband_verbs/%s", root, device->ibv.dev_name);
  if (strcmp(path, device->ibv.dev_path) != 0) memcpy(device->ibv.dev_path, path, strlen(path) + 1);
  snprintf(path, sizeof(path), "%s/class/infiniband/%s", root, device->ibv.name);
  if (strcmp(path, device->ibv.ibdev_path) != 0)
    memcpy(device->ibv.ibdev_path, path, strlen(path) + 1);
}

}  // namespace

int ListDevices(Session* session, Device** devices) {
  const uint32_t limit =
      session->welcome().device_count < kMaxDevices ? session->welcome().device_count : kMaxDevices;
  int found = 0;
  for (uint32_t index = 0; index < limit; ++index) {
    // Without the lock, which fork takes: the daemon may be slow.
    rocegw_device_reply reply;
    const int error = QueryDevice(session, index, &reply);
    if (error != 0) {
      if (session->dead()) return -error;
      continue;
    }
    const char* const root = SysfsRoot(session);
    pthread_mutex_lock(&g_lock);
    Device* device = FindOrMake(reply.name);
    if (device != nullptr) Update(root, index, reply, device);
    pthread_mutex_unlock(&g_lock);
    if (device != nullptr) devices[found++] = device;
  }
  return found;
}

bool IsOurs(const ibv_device* device) {
  bool found = false;
  pthread_mutex_lock(&g_lock);
  for (uint32_t i = 0; i < g_device_count && !found; ++i) found = &g_devices[i]->ibv == device;
  pthread_mutex_unlock(&g_lock);
  return found;
}

int ForEachGid(Session* session, uint32_t device, uint32_t first,
               bool (*visit)(const rocegw_gid_entry& entry, void* context), void* context) {
  for (;;) {
    rocegw_query_gids request = {};
    request.device = device;
    request.first = first;
    rocegw_gids_reply reply;
    const int error = session->Call(ROCEGW_MSG_QUERY_GIDS, &request, &reply);
    if (error != 0) return error;
    const uint32_t count =
        reply.count < ROCEGW_GIDS_PER_REPLY ? reply.count : ROCEGW_GIDS_PER_REPLY;
    for (uint32_t i = 0; i < count; ++i) {
      if (!visit(reply.entry[i], context)) return 0;
    }
    if (reply.more == 0 || count == 0) return 0;
    first = reply.entry[count - 1].index + 1;
  }
}

void LockDevices() { pthread_mutex_lock(&g_lock); }
void UnlockDevices() { pthread_mutex_unlock(&g_lock); }
void ResetDevicesLock() { pthread_mutex_init(&g_lock, nullptr); }

}  // namespace rocegw::client

using rocegw::client::Device;
using rocegw::client::DeviceList;
using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
using rocegw::client::Session;

ROCEGW_EXPORT ibv_device** ibv_get_device_list(int* num_devices) {
  Device* ours[rocegw::client::kMaxDevices] = {};
  int our_count = -1;
  // The first request detects a daemon that has gone since the last call; then attach once more.
  Session* session = nullptr;
  for (int attempt = 0; attempt < 2 && our_count < 0; ++attempt) {
    if (session != nullptr) session->Release();
    session = Session::Acquire();
    if (session == nullptr) break;
    our_count = rocegw::client::ListDevices(session, ours);
  }
  if (our_count < 0 && session != nullptr) {
    session->Release();
    session = nullptr;
  }

  const auto real_list = ROCEGW_REAL(ibv_get_device_list);
  int real_count = 0;
  errno = ENOSYS;
  ibv_device** real = real_list != nullptr ? real_list(&real_count) : nullptr;
  if (real == nullptr) real_count = 0;
  const int refusal = our_count < 0 ? rocegw::client::Session::Refusal() : 0;
  if (refusal != 0 && real_count == 0) {
    // The program's devices are in the other list.
    if (real != nullptr) ROCEGW_REAL(ibv_free_device_list)(real);
    real = nullptr;
    errno = refusal;
  }
  if (our_count < 0 && real == nullptr) {
    if (num_devices != nullptr) *num_devices = 0;
    return nullptr;
  }
  if (our_count < 0) our_count = 0;
  const size_t total = static_cast<size_t>(our_count) + static_cast<size_t>(real_count);
  constexpr size_t kPointer = sizeof(void*);
  auto* list = static_cast<DeviceList*>(calloc(1, sizeof(DeviceList) + (total + 1) * kPointer));
  if (list == nullptr) {
    if (session != nullptr) session->Release();
    if (real != nullptr) ROCEGW_REAL(ibv_free_device_list)(real);
    errno = ENOMEM;
    return nullptr;
  }
  list->session = session;
  list->real = real;
  for (int i = 0; i < our_count; ++i) list->entry[i] = &ours[i]->ibv;
  for (int i = 0; i < real_count; ++i) list->entry[our_count + i] = real[i];
  if (num_devices != nullptr) *num_devices = static_cast<int>(total);
  return list->entry;
}

ROCEGW_EXPORT void ibv_free_device_list(ibv_device** entries) {
  if (entries == nullptr) return;
  DeviceList* list = rocegw::client::ListOf(entries);
  if (list->real != nullptr) ROCEGW_REAL(ibv_free_device_list)(list->real);
  if (list->session != nullptr) list->session->Release();
  free(list);
}

ROCEGW_EXPORT const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ROCEGW_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  if (!IsOurs(device)) return ROCEGW_REAL(ibv_get_device_guid)(device);
  return FromIbv(device)->guid;
}

ROCEGW_EXPORT int ibv_get_device_index(ibv_device* device) {
  if (!IsOurs(device)) {
    const auto real = ROCEGW_REAL(ibv_get_device_index);
    return real != nullptr ? real(device) : -1;
  }
  return -1;  // the device has no kernel index
}
