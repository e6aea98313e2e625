// SPDX-License-Identifier: Apache-2.0
// File system for SQLite that simulates power loss. Written data stays in memory until a sync moves
// it to the real file. At the cut, unsynced sectors are lost, except for a random part, as on a
// disk with a cache; later operations fail. It finds missing syncs, which the kill of a process
// cannot show because the page cache survives. At most one object exists at a time. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace rocegw::testing {

class CrashVfs {
 public:
  static constexpr char kName[] = "rocegw-crash";

  // Registers the file system. The power is cut at the operation (write, truncation, sync) with
  // this number; 0: never. `keep`: percentage of unsynced sectors that survive.
  CrashVfs(uint64_t cut_at, unsigned keep, uint64_t seed);
  // Unregisters the file system, which must not be in use.
  ~CrashVfs();
  CrashVfs(const CrashVfs&) = delete;
  CrashVfs& operator=(const CrashVfs&) = delete;

  // Cuts the power now, unless it is off.
  void Cut();
  // While the disk is full, no file can grow.
  void SetFull(bool full);
  void FailNextSync();
  bool cut() const;
  uint64_t operations() const;
};

}  // namespace rocegw::testing
