// SPDX-License-Identifier: Apache-2.0
// Bytes of the daemon's heap that one object of a kind costs, whatever its size: the control
// thread's row, the workers' copies, and the object's events that may wait for the program. Memory
// that depends on an object's size is charged where the object is created. The bytes are upper
// bounds, checked against the allocator by tests/unit/session/heap_charge_test.cc.
#pragma once

#include <cstdint>

#include "gateway/tenant/amounts.h"

namespace rocegw::tenant {

// Limit of unread events per object for a program that follows the order of the verbs. A session
// with more is not read until the program reads its events.
inline constexpr uint64_t kEventsPerObject = 8;
// Bytes of a waiting event with its allocation.
inline constexpr uint64_t kEventBytes = 512;

constexpr uint64_t HeapCostOf(Resource resource) {
  switch (resource) {
    case Resource::kSessions:
      return uint64_t{768} << 10;
    case Resource::kPds:
      // XRC domains count as well; each is a session of its worker.
      return 4096;
    case Resource::kCqs:
      return 2048 + kEventsPerObject * 128;
    case Resource::kQps:
      return 4096 + kEventsPerObject * 128;
    case Resource::kSrqs:
      return 2048 + kEventsPerObject * 128;
    case Resource::kMrs:
      return 1024;
    case Resource::kCmIds:
      return 2048 + kEventsPerObject * kEventBytes;
    case Resource::kDescriptors:
      return 512;
    case Resource::kAhs:
    case Resource::kListeners:
    case Resource::kChannels:
    case Resource::kRegisteredBytes:
    case Resource::kSegmentBytes:
    case Resource::kHeapBytes:
    case Resource::kRemappedBytes:
    case Resource::kCount:
      return 0;
  }
  return 0;
}

}  // namespace rocegw::tenant
