// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/process/fork.h"

#include <pthread.h>

#include "gateway/client/cm/cm_channel.h"
#include "gateway/client/cm/cm_devices.h"
#include "gateway/client/cm/cm_id.h"
#include "gateway/client/device/device.h"
#include "gateway/client/device/object_ids.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/memory/memory_map.h"
#include "gateway/client/memory/regions.h"
#include "gateway/client/process/sysfs_tree.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

namespace {

// Takes the locks in the order in which the control path nests them.
void Prepare() {
  LockCmDevices();
  LockChannels();
  LockDevices();
  LockRegions();
  Session::LockForFork();
  LockIds();
  LockObjects();
  LockSysfsRoots();
}

void InParent() {
  UnlockSysfsRoots();
  UnlockObjects();
  UnlockIds();
  Session::UnlockAfterFork();
  UnlockRegions();
  UnlockDevices();
  UnlockChannels();
  UnlockCmDevices();
}

void ResetQueueLocks(ObjectKind kind, void* object) {
  if (kind == ObjectKind::kCq) {
    static_cast<Cq*>(object)->rings.ResetLock();
    static_cast<Cq*>(object)->polling.Reset();
  } else if (kind == ObjectKind::kQp) {
    auto* qp = static_cast<Qp*>(object);
    qp->rings.send.lock.Reset();
    qp->rings.receive.lock.Reset();
  } else if (kind == ObjectKind::kSrq) {
    static_cast<Srq*>(object)->ring.lock.Reset();
  }
}

uint32_t g_forks = 0;

void InChild() {
  ++g_forks;
  ForEachObject(&ResetQueueLocks);
  ResetSysfsRootsLock();
  ResetObjectsLock();
  ResetIdsLock();
  Session::CutOffInChild();
  ForgetMemoryMap();
  MakeRegionsPrivateInChild();
  ResetDevicesLock();
  ResetChannelsLock();
  ResetCmDevicesLock();
}

}  // namespace

uint32_t ForkCount() { return g_forks; }

void InstallForkHandlers() {
  static int installed = 0;
  if (__atomic_exchange_n(&installed, 1, __ATOMIC_SEQ_CST) == 0) {
    pthread_atfork(&Prepare, &InParent, &InChild);
  }
}

}  // namespace rocegw::client
