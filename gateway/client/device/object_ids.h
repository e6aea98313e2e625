// SPDX-License-Identifier: Apache-2.0
// Numbers that stand for objects of this process in events: an event may arrive after its object
// was destroyed, so the daemon gets a number that is never used twice, not a pointer. Control path;
// any thread; one lock inside.
#pragma once

#include <cstdint>

namespace rocegw::client {

enum class ObjectKind : uint8_t { kNone = 0, kCq, kQp, kSrq, kCmId };

// 0: out of memory. Ids are never 0.
uint64_t AddObject(ObjectKind kind, void* object);
void RemoveObject(uint64_t id);

// Holds the lock while it exists; the object cannot be removed meanwhile.
class ObjectLookup {
 public:
  ObjectLookup(uint64_t id, ObjectKind kind);
  ~ObjectLookup();
  ObjectLookup(const ObjectLookup&) = delete;
  ObjectLookup& operator=(const ObjectLookup&) = delete;
  // nullptr: gone.
  void* object() const { return object_; }

 private:
  void* object_;
};

// For the handlers of fork: the lock, and every object there is (the caller holds the lock).
void LockObjects();
void UnlockObjects();
void ResetObjectsLock();
void ForEachObject(void (*visit)(ObjectKind kind, void* object));

}  // namespace rocegw::client
