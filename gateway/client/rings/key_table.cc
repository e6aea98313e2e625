// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/key_table.h"

#include <cerrno>
#include <cstdlib>

#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

namespace {
enum SlotState : uint32_t { kEmpty = 0, kUsed = 1, kRemoved = 2 };

uint32_t Hash(uint32_t key) { return (key * 0x9E3779B1u) >> 7; }
}  // namespace

// Entry with a sequence lock: `version` is odd while a writer changes the entry; a reader uses the
// fields only if it saw the same even version before and after.
struct KeyTable::Entry {
  uint32_t version;
  uint32_t state;
  uint32_t lkey;
  uint32_t pd;
  uint64_t iova;
  uint64_t length;
  uint64_t address;
  uint32_t access;
};

struct KeyTable::Table {
  Table* previous;
  uint32_t mask;
  uint32_t taken;  // used and removed entries
  uint32_t used;
  Entry entry[];
};

void KeyTable::Write(Entry* entry, uint32_t lkey, const RegisteredRange& range) {
  const uint32_t version = entry->version;
  __atomic_store_n(&entry->version, version + 1, __ATOMIC_SEQ_CST);
  StoreRelease(&entry->state, uint32_t{kUsed});
  StoreRelease(&entry->lkey, lkey);
  StoreRelease(&entry->pd, range.pd);
  StoreRelease(&entry->iova, range.iova);
  StoreRelease(&entry->length, range.length);
  StoreRelease(&entry->address, range.address);
  StoreRelease(&entry->access, range.access);
  StoreRelease(&entry->version, version + 2);
}

void KeyTable::Place(Table* table, uint32_t lkey, const RegisteredRange& range) {
  uint32_t index = Hash(lkey) & table->mask;
  while (table->entry[index].state == kUsed) index = (index + 1) & table->mask;
  Entry& entry = table->entry[index];
  if (entry.state == kEmpty) ++table->taken;
  ++table->used;
  Write(&entry, lkey, range);
}

void KeyTable::SetState(Table* table, uint32_t index, uint32_t state) {
  Entry& entry = table->entry[index];
  const uint32_t version = entry.version;
  __atomic_store_n(&entry.version, version + 1, __ATOMIC_SEQ_CST);
  StoreRelease(&entry.state, state);
  StoreRelease(&entry.version, version + 2);
}

int KeyTable::Grow() {
  const uint32_t used = table_ == nullptr ? 0 : table_->used;
  uint32_t size = 64;
  while (size < 4 * (used + 1)) size *= 2;
  auto* bigger = static_cast<Table*>(calloc(1, sizeof(Table) + size * sizeof(Entry)));
  if (bigger == nullptr) return ENOMEM;
  bigger->mask = size - 1;
  bigger->previous = table_;
  if (table_ != nullptr) {
    for (uint32_t i = 0; i <= table_->mask; ++i) {
      const Entry& e = table_->entry[i];
      if (e.state == kUsed) Place(bigger, e.lkey, {e.iova, e.length, e.address, e.pd, e.access});
    }
  }
  StoreRelease(&table_, bigger);
  return 0;
}

int KeyTable::Insert(uint32_t lkey, const RegisteredRange& range) {
  SpinGuard guard(lock_);
  if (table_ == nullptr || 2 * (table_->taken + 1) > table_->mask + 1) {
    if (Grow() != 0) return ENOMEM;
  }
  Place(table_, lkey, range);
  return 0;
}

void KeyTable::Replace(uint32_t lkey, const RegisteredRange& range) {
  SpinGuard guard(lock_);
  if (table_ == nullptr) return;
  for (uint32_t index = Hash(lkey) & table_->mask; table_->entry[index].state != kEmpty;
       index = (index + 1) & table_->mask) {
    Entry& entry = table_->entry[index];
    if (entry.state != kUsed || entry.lkey != lkey) continue;
    Write(&entry, lkey, range);
    return;
  }
}

void KeyTable::Remove(uint32_t lkey) {
  SpinGuard guard(lock_);
  if (table_ == nullptr) return;
  for (uint32_t index = Hash(lkey) & table_->mask; table_->entry[index].state != kEmpty;
       index = (index + 1) & table_->mask) {
    const Entry& entry = table_->entry[index];
    if (entry.state != kUsed || entry.lkey != lkey) continue;
    --table_->used;
    SetState(table_, index, kRemoved);
    // In front of an empty entry no removal mark is needed; otherwise marks would fill the table of
    // a program that registers and deregisters all the time.
    if (table_->entry[(index + 1) & table_->mask].state != kEmpty) return;
    for (; table_->entry[index].state == kRemoved; index = (index - 1) & table_->mask) {
      SetState(table_, index, kEmpty);
      --table_->taken;
    }
    return;
  }
}

bool KeyTable::Find(uint32_t lkey, RegisteredRange* range) const {
  const Table* table = LoadAcquire(&table_);
  if (table == nullptr) return false;
  uint32_t index = Hash(lkey) & table->mask;
  for (uint32_t probes = 0; probes <= table->mask; ++probes, index = (index + 1) & table->mask) {
    const Entry& entry = table->entry[index];
    for (;;) {
      const uint32_t version = LoadAcquire(&entry.version);
      if (version % 2 != 0) {
        PauseBriefly();
        continue;
      }
      const uint32_t state = LoadAcquire(&entry.state);
      const uint32_t key = LoadAcquire(&entry.lkey);
      *range = {LoadAcquire(&entry.iova), LoadAcquire(&entry.length), LoadAcquire(&entry.address),
                LoadAcquire(&entry.pd), LoadAcquire(&entry.access)};
      if (LoadRelaxed(&entry.version) != version) continue;
      if (state == kEmpty) return false;
      if (state == kUsed && key == lkey) return true;
      break;
    }
  }
  return false;
}

uint8_t* KeyTable::Locate(uint32_t lkey, uint32_t pd, uint64_t iova, uint32_t length,
                          uint32_t need_access, uint32_t not_access) const {
  RegisteredRange range;
  if (!Find(lkey, &range)) return nullptr;
  if (range.pd != pd || (range.access & (need_access | not_access)) != need_access) return nullptr;
  if (iova < range.iova) return nullptr;
  const uint64_t offset = iova - range.iova;
  if (offset > range.length || range.length - offset < length) return nullptr;
  return reinterpret_cast<uint8_t*>(range.address + offset);
}

void KeyTable::Clear() {
  while (table_ != nullptr) {
    Table* previous = table_->previous;
    free(table_);
    table_ = previous;
  }
}

}  // namespace rocegw::client
