// SPDX-License-Identifier: Apache-2.0
// Ids that stand for objects of this process in events. An event may arrive after its object was
// destroyed, so the daemon gets a number that is never reused instead of a pointer. Control path;
// any thread; one lock inside.
#pragma once

#include <cstdint>

namespace rocegw::client {

enum class ObjectKind : uint8_t { kNone = 0, kCq, kQp, kSrq, kCmId };

// Returns the id of an object; 0: out of memory.
uint64_t AddObject(ObjectKind kind, void* object);
void RemoveObject(uint64_t id);

// Lookup that holds the lock while it exists; the object cannot be removed meanwhile.
class ObjectLookup {
 public:
  ObjectLookup(uint64_t id, ObjectKind kind);
  ~ObjectLookup();
  ObjectLookup(const ObjectLookup&) = delete;
  ObjectLookup& operator=(const ObjectLookup&) = delete;
  // Returns nullptr for a destroyed object.
  void* object() const { return object_; }

 private:
  void* object_;
};

// Locks all ids, and visits every object under the lock; for the fork handlers.
void LockObjects();
void UnlockObjects();
void ResetObjectsLock();
void ForEachObject(void (*visit)(ObjectKind kind, void* object));

}  // namespace rocegw::client
