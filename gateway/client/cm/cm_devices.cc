// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/cm/cm_devices.h"

#include <fcntl.h>
#include <pthread.h>

#include <cerrno>
#include <cstdlib>

#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/device.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

namespace {

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // guards the table and all reference counts
CmDevice* g_devices[kMaxDevices];                    // by the daemon's device number
SpinLock g_lists_lock;                               // guards the lists that programs hold

CmDevice* Open(Session* session, Device* device) {
  auto* opened = MakeObject<CmDevice>();
  if (opened == nullptr) return nullptr;
  opened->context = ibv_open_device(&device->ibv);
  opened->pd = opened->context != nullptr ? ibv_alloc_pd(opened->context) : nullptr;
  if (opened->pd == nullptr) {
    const int error = errno;
    if (opened->context != nullptr) ibv_close_device(opened->context);
    free(opened);
    errno = error;
    return nullptr;
  }
  FromIbv(opened->pd)->made_for_ids = true;
  opened->session = session;
  opened->references = 1;
  return opened;
}

CmDevice* OpenByNumber(Session* session, uint32_t index) {
  Device* devices[kMaxDevices] = {};
  const int count = ListDevices(session, devices);
  for (int i = 0; i < count; ++i) {
    if (devices[i]->index == index) return Open(session, devices[i]);
  }
  errno = ENODEV;
  return nullptr;
}

// Called without the lock, since it asks the daemon.
void Close(CmDevice* device) {
  if (device->xrcd != nullptr) ibv_close_xrcd(device->xrcd);
  ibv_dealloc_pd(device->pd);
  ibv_close_device(device->context);
  free(device);
}

// Returns the table's device if it belongs to that session, with a reference for the caller;
// otherwise nullptr.
CmDevice* FindOpen(const Session* session, uint32_t index) {
  pthread_mutex_lock(&g_lock);
  CmDevice* device = g_devices[index];
  // The context holds a reference to its session, so equal addresses mean the same session.
  if (device != nullptr && device->session != session) device = nullptr;
  if (device != nullptr) ++device->references;
  pthread_mutex_unlock(&g_lock);
  return device;
}

}  // namespace

CmDevice* AcquireCmDevice(Session* session, uint32_t index) {
  if (index >= kMaxDevices) {
    errno = ENODEV;
    return nullptr;
  }
  if (CmDevice* open = FindOpen(session, index)) return open;
  // Opened without the lock, which fork takes. If two threads do this, one result is discarded.
  CmDevice* device = OpenByNumber(session, index);
  if (device == nullptr) return nullptr;
  pthread_mutex_lock(&g_lock);
  CmDevice* const before = g_devices[index];
  const bool late = before != nullptr && before->session == session;
  CmDevice* unused = late ? device : before;
  if (late) {
    ++before->references;
    device = before;
  } else {
    ++device->references;
    g_devices[index] = device;
    if (before != nullptr && --before->references != 0) unused = nullptr;
  }
  pthread_mutex_unlock(&g_lock);
  if (unused != nullptr) Close(unused);
  return device;
}

void ReleaseCmDevice(CmDevice* device) {
  pthread_mutex_lock(&g_lock);
  const bool last = --device->references == 0;
  pthread_mutex_unlock(&g_lock);
  if (last) Close(device);
}

ibv_xrcd* XrcdOfCmDevice(CmDevice* device) {
  ibv_xrcd* xrcd = __atomic_load_n(&device->xrcd, __ATOMIC_ACQUIRE);
  if (xrcd != nullptr) return xrcd;
  ibv_xrcd_init_attr own = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
  xrcd = ibv_open_xrcd(device->context, &own);
  ibv_xrcd* before = nullptr;
  if (xrcd == nullptr || __atomic_compare_exchange_n(&device->xrcd, &before, xrcd, false,
                                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    return xrcd;
  }
  ibv_close_xrcd(xrcd);
  return before;
}

void LockCmDevices() {
  pthread_mutex_lock(&g_lock);
  g_lists_lock.Lock();
}
void UnlockCmDevices() {
  g_lists_lock.Unlock();
  pthread_mutex_unlock(&g_lock);
}
void ResetCmDevicesLock() {
  g_lists_lock.Reset();
  pthread_mutex_init(&g_lock, nullptr);
}

}  // namespace rocegw::client

using rocegw::client::AcquireCmDevice;
using rocegw::client::CmDevice;
using rocegw::client::g_lists_lock;
using rocegw::client::IsOurs;
using rocegw::client::kMaxDevices;
using rocegw::client::RealCmHasDevices;
using rocegw::client::Session;
using rocegw::client::SpinGuard;

namespace {

// List held by a program: it points to `entry`.
struct ContextList {
  ContextList* next;
  ibv_context** real;  // nullptr: none
  int count;           // number of our contexts, which come first
  CmDevice* device[kMaxDevices];
  ibv_context* entry[];
};

ContextList* g_lists = nullptr;

// Removes and returns our list that begins there; nullptr: not ours.
ContextList* TakeList(ibv_context** entries) {
  SpinGuard guard(g_lists_lock);
  for (ContextList** link = &g_lists; *link != nullptr; link = &(*link)->next) {
    ContextList* list = *link;
    if (list->entry != entries) continue;
    *link = list->next;
    return list;
  }
  return nullptr;
}

}  // namespace

ROCEGW_EXPORT ibv_context** rdma_get_devices(int* num_devices) {
  Session* session = rocegw::client::AcquireForCm();
  if (session == nullptr) {
    const auto real = ROCEGW_REAL(rdma_get_devices);
    if (real != nullptr) return real(num_devices);
    errno = ENODEV;
    return nullptr;
  }
  int real_count = 0;
  ibv_context** real = RealCmHasDevices() ? ROCEGW_REAL(rdma_get_devices)(&real_count) : nullptr;
  const size_t most = kMaxDevices + static_cast<size_t>(real_count) + 1;
  constexpr size_t kPointer = sizeof(void*);
  auto* list = static_cast<ContextList*>(calloc(1, sizeof(ContextList) + most * kPointer));
  int count = 0;
  for (uint32_t i = 0; list != nullptr && i < session->welcome().device_count; ++i) {
    CmDevice* device = AcquireCmDevice(session, i);
    if (device == nullptr) continue;
    list->device[count] = device;
    list->entry[count++] = device->context;
  }
  session->Release();
  if (list != nullptr) {
    list->real = real;
    list->count = count;
    // The installed library lists the devices of libibverbs, which includes ours.
    for (int i = 0; i < real_count; ++i) {
      if (!IsOurs(real[i]->device)) list->entry[count++] = real[i];
    }
  } else if (real != nullptr) {
    ROCEGW_REAL(rdma_free_devices)(real);
  }
  if (list == nullptr) return nullptr;
  {
    SpinGuard guard(g_lists_lock);
    list->next = g_lists;
    g_lists = list;
  }
  if (num_devices != nullptr) *num_devices = count;
  return list->entry;
}

ROCEGW_EXPORT void rdma_free_devices(ibv_context** entries) {
  if (entries == nullptr) return;
  ContextList* list = TakeList(entries);
  if (list == nullptr) {
    ROCEGW_REAL(rdma_free_devices)(entries);
    return;
  }
  for (int i = 0; i < list->count; ++i) rocegw::client::ReleaseCmDevice(list->device[i]);
  if (list->real != nullptr) ROCEGW_REAL(rdma_free_devices)(list->real);
  free(list);
}
