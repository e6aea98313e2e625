// SPDX-License-Identifier: Apache-2.0
// Local view of the registered memory of one session: lkey to address range. The library needs it
// where it copies small payloads itself, at post and poll time; the daemon checks every key again
// on its own. Insert, Replace and Remove come from the control path, any thread; Find from any
// thread without a lock. A lookup that races with a change of the same key may say either, never
// garbage. Addresses are virtual addresses of this process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

struct RegisteredRange {
  uint64_t iova;     // first address that users of the key name
  uint64_t length;   // bytes
  uint64_t address;  // where `iova` lies in this process
  uint32_t pd;       // handle of the protection domain
  uint32_t access;   // enum ibv_access_flags
};

class KeyTable {
 public:
  // ENOMEM or 0. The key must not be in the table.
  int Insert(uint32_t lkey, const RegisteredRange& range);
  // What a key in the table stands for from now on.
  void Replace(uint32_t lkey, const RegisteredRange& range);
  void Remove(uint32_t lkey);
  // False when the key is not known.
  bool Find(uint32_t lkey, RegisteredRange* range) const;

  // Where [iova, iova + length) of the key lies; nullptr when the key, its PD or the range does not
  // fit, or when the key does not have the bits `need_access`, or has one of `not_access`.
  uint8_t* Locate(uint32_t lkey, uint32_t pd, uint64_t iova, uint32_t length, uint32_t need_access,
                  uint32_t not_access = 0) const;

  // Frees everything; nobody may look any more.
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
      nullptr;  // earlier, smaller tables hang behind it until Clear: a reader may still be in one
};

}  // namespace rocegw::client
