// SPDX-License-Identifier: Apache-2.0
// Memory windows (IBTA 10.6.7): keys for a part of a region that work requests give out and take
// back. A window of type 1 serves every queue pair of its protection domain, one of type 2 the one
// that has bound it (2B). The low 8 bits of a window's key change from binding to binding, the
// others are its name.
//
// One worker binds what another one's queue pairs use, so both classes are thread safe; a window's
// lock is held for a copy of a few words. Made by the control thread, which frees it after every
// worker has unlinked it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "gateway/base/ids.h"
#include "gateway/verbs/types.h"

namespace rocegw::verbs {

struct RegionConfig;

// How many windows are bound to a region; it cannot be deregistered before they are gone.
class BoundWindows {
 public:
  // False: the region is about to go.
  bool Enter();
  void Leave() { count_.fetch_sub(1, std::memory_order_release); }
  // No window enters any more; false: there are some, and nothing changes.
  bool Close();
  uint32_t count() const;

 private:
  static constexpr uint32_t kClosed = UINT32_MAX;
  std::atomic<uint32_t> count_{0};
};

// Whose access it is: a queue pair, as the worker that owns it knows it.
struct RemoteUser {
  SessionId session;
  uint32_t pd = 0;
  Qpn qpn;
  SlotHandle qp;
};

// A work request's wish.
struct BindRequest {
  MemoryKey before;  // the window's present key
  MemoryKey key;     // the one it gets; its low 8 bits count
  MemoryKey region;  // not looked at without a length
  uint32_t access = 0;
  uint64_t address = 0;
  uint64_t length = 0;  // 0: bound to nothing, type 1 only
};

class MemoryWindow {
 public:
  MemoryWindow(MwType type, SessionId session, uint32_t pd, MemoryKey key)
      : type_(type), session_(session), pd_(pd), key_(key) {}
  ~MemoryWindow() { Unbind(); }
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  static constexpr uint32_t NameOf(MemoryKey key) { return key.value >> 8; }

  // `region` is what the request names; nullptr: nothing. False: nothing changes.
  bool Bind(const RemoteUser& user, const BindRequest& request, const RegionConfig* region);
  // Takes back a window of type 2 that is bound by this key and user. False: it is not.
  bool Invalidate(const RemoteUser& user, MemoryKey key);
  // Where a range of addresses that the key's users name lies; false: it is not theirs.
  struct Place {
    MemoryKey region;
    uint64_t address = 0;  // as the region's users name it
  };
  bool Find(const RemoteUser& user, MemoryKey key, uint32_t access, uint64_t va, uint64_t length,
            Place& place) const;
  void Unbind();

  MwType type() const { return type_; }
  // What it opens now; nothing while it is not bound.
  struct Binding {
    MemoryKey key;
    MemoryKey region;
    uint32_t access = 0;
    uint64_t address = 0;
    uint64_t length = 0;
    Qpn qpn;  // type 2
  };
  std::optional<Binding> binding() const;

 private:
  class Guard;
  bool IsUsers(const RemoteUser& user, MemoryKey key) const;
  void Leave();

  const MwType type_;
  const SessionId session_;
  const uint32_t pd_;
  mutable std::atomic<bool> taken_{false};  // a lock, for what follows
  MemoryKey key_;
  MemoryKey region_;
  BoundWindows* bound_ = nullptr;  // the region's; nullptr: not bound
  uint32_t access_ = 0;
  uint64_t address_ = 0;
  uint64_t length_ = 0;
  Qpn qpn_;        // type 2: who has bound it
  SlotHandle qp_;  // same: another queue pair may get the number later
};

}  // namespace rocegw::verbs
