// SPDX-License-Identifier: Apache-2.0
// A file system for SQLite whose power can be cut: what is written stays in memory until it is
// synced, and only then reaches the real file. At the cut, sectors that were not synced are lost,
// or a random part of them is not, as on a disk with a cache; from then on everything fails.
// Killing a process cannot show a missing sync, since the page cache survives it; this does. One at
// a time; thread safe.
#pragma once

#include <cstdint>
#include <string>

namespace rocegw::testing {

class CrashVfs {
 public:
  static constexpr char kName[] = "rocegw-crash";

  // Registers it; the power is on and will be cut at the operation (write, truncation, sync) with
  // this number, 0: not. `keep` is how many of 100 unsynced sectors survive.
  CrashVfs(uint64_t cut_at, unsigned keep, uint64_t seed);
  // Whoever used it is gone. Unregisters it.
  ~CrashVfs();
  CrashVfs(const CrashVfs&) = delete;
  CrashVfs& operator=(const CrashVfs&) = delete;

  // Now, unless it has been.
  void Cut();
  // While the disk is full no file grows.
  void SetFull(bool full);
  void FailNextSync();
  bool cut() const;
  uint64_t operations() const;
};

}  // namespace rocegw::testing
