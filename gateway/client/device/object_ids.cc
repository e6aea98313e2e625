// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/device/object_ids.h"

#include <pthread.h>

#include <cstdlib>

namespace rocegw::client {

namespace {

struct Slot {
  void* object;
  uint32_t generation;
  uint32_t next_free;  // index + 1
  ObjectKind kind;
};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Slot* g_slots = nullptr;
uint32_t g_slot_count = 0;
uint32_t g_first_free = 0;  // index + 1

bool Grow() {
  const uint32_t bigger = g_slot_count == 0 ? 64 : 2 * g_slot_count;
  auto* slots = static_cast<Slot*>(realloc(g_slots, bigger * sizeof(Slot)));
  if (slots == nullptr) return false;
  for (uint32_t i = bigger; i-- > g_slot_count;) {
    slots[i] = {nullptr, 1, g_first_free, ObjectKind::kNone};
    g_first_free = i + 1;
  }
  g_slots = slots;
  g_slot_count = bigger;
  return true;
}

Slot* Find(uint64_t id) {
  const auto index = static_cast<uint32_t>(id);
  if (index >= g_slot_count) return nullptr;
  Slot& slot = g_slots[index];
  return slot.generation == id >> 32 && slot.kind != ObjectKind::kNone ? &slot : nullptr;
}

}  // namespace

uint64_t AddObject(ObjectKind kind, void* object) {
  uint64_t id = 0;
  pthread_mutex_lock(&g_lock);
  if (g_first_free != 0 || Grow()) {
    const uint32_t index = g_first_free - 1;
    Slot& slot = g_slots[index];
    g_first_free = slot.next_free;
    slot.object = object;
    slot.kind = kind;
    id = uint64_t{slot.generation} << 32 | index;
  }
  pthread_mutex_unlock(&g_lock);
  return id;
}

void RemoveObject(uint64_t id) {
  pthread_mutex_lock(&g_lock);
  if (Slot* slot = Find(id)) {
    slot->object = nullptr;
    slot->kind = ObjectKind::kNone;
    if (++slot->generation == 0) slot->generation = 1;
    slot->next_free = g_first_free;
    g_first_free = static_cast<uint32_t>(slot - g_slots) + 1;
  }
  pthread_mutex_unlock(&g_lock);
}

ObjectLookup::ObjectLookup(uint64_t id, ObjectKind kind) {
  pthread_mutex_lock(&g_lock);
  const Slot* slot = Find(id);
  object_ = slot != nullptr && slot->kind == kind ? slot->object : nullptr;
}

ObjectLookup::~ObjectLookup() { pthread_mutex_unlock(&g_lock); }

void LockObjects() { pthread_mutex_lock(&g_lock); }
void UnlockObjects() { pthread_mutex_unlock(&g_lock); }
void ResetObjectsLock() { pthread_mutex_init(&g_lock, nullptr); }

void ForEachObject(void (*visit)(ObjectKind kind, void* object)) {
  for (uint32_t i = 0; i < g_slot_count; ++i) {
    if (g_slots[i].kind != ObjectKind::kNone) visit(g_slots[i].kind, g_slots[i].object);
  }
}

}  // namespace rocegw::client
