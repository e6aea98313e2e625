// SPDX-License-Identifier: Apache-2.0
// Local table of one session's registered memory: lkey to address range. The library needs it to
// copy small payloads itself, at post and poll time; the daemon checks every key again. Insert,
// Replace and Remove belong to the control path, any thread; Find is for any thread without a lock.
// A lookup during a change of the same key returns the old or the new range. Addresses are virtual
// addresses of this process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

struct RegisteredRange {
  uint64_t iova;     // first address in the key's address space
  uint64_t length;   // bytes
  uint64_t address;  // address of `iova` in this process
  uint32_t pd;       // handle of the protection domain
  uint32_t access;   // enum ibv_access_flags
};

// Bit of a range's access flags that is no verbs flag: processors cannot touch the memory.
inline constexpr uint32_t kAccessDeviceMemory = 1u << 31;

class KeyTable {
 public:
  // Adds a key, which must not be in the table. ENOMEM or 0.
  int Insert(uint32_t lkey, const RegisteredRange& range);
  // Changes the range of a key in the table.
  void Replace(uint32_t lkey, const RegisteredRange& range);
  void Remove(uint32_t lkey);
  // Returns false for an unknown key.
  bool Find(uint32_t lkey, RegisteredRange* range) const;

  // Returns the address of [iova, iova + length) of the key; nullptr if the key, its PD or the
  // range does not fit, if the key lacks a bit of `need_access`, or has one of `not_access`.
  uint8_t* Locate(uint32_t lkey, uint32_t pd, uint64_t iova, uint32_t length, uint32_t need_access,
                  uint32_t not_access = 0) const;

  // Frees everything; no lookup may run.
  void Clear();
  void ResetLock() { lock_.Reset(); }

 private:
  struct Entry;
  struct Table;

  int Grow();
  static void SetState(Table* table, uint32_t index, uint32_t state);
  static void Write(Entry* entry, uint32_t lkey, const RegisteredRange& range);
  static void Place(Table* table, uint32_t lkey, const RegisteredRange& range);

  SpinLock lock_;
  Table* table_ =
      nullptr;  // smaller, earlier tables stay linked until Clear: a reader may still use one
};

}  // namespace rocegw::client
