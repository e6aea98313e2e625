// SPDX-License-Identifier: Apache-2.0
// Memory windows (IBTA 10.6.7): keys for a part of a region, which work requests bind and
// invalidate. A window of type 1 serves every queue pair of its protection domain; one of type 2
// serves the queue pair that bound it (2B). The low 8 bits of a window's key change with each
// binding; the upper 24 identify the window.
//
// A worker may bind a window that queue pairs of another worker use, so both classes are
// thread-safe; the lock of a window is held only to copy a few words. The control thread makes
// windows, and frees them after every worker has unlinked them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "gateway/base/ids.h"
#include "gateway/verbs/types.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::verbs {

struct RegionConfig;

// Number of windows bound to a region, which cannot be deregistered before all are unbound.
class BoundWindows {
 public:
  // Counts a new binding. Returns false if the region is being deregistered.
  bool Enter();
  void Leave() { count_.fetch_sub(1, std::memory_order_release); }
  // Refuses new bindings from now on. Returns false, without a change, while windows are bound.
  bool Close();
  uint32_t count() const;

 private:
  static constexpr uint32_t kClosed = UINT32_MAX;
  std::atomic<uint32_t> count_{0};
};

// Originator of a remote access: a queue pair, as its worker knows it.
struct RemoteUser {
  SessionId session;
  uint32_t pd = 0;
  Qpn qpn;
  SlotHandle qp;
};

// Parameters of a bind work request.
struct BindRequest {
  MemoryKey before;  // current key of the window
  MemoryKey key;     // new key; only its low 8 bits count
  MemoryKey region;  // ignored if length is 0
  uint32_t access = 0;
  uint64_t address = 0;
  uint64_t length = 0;  // 0: unbind; type 1 only
};

class MemoryWindow {
 public:
  MemoryWindow(MwType type, SessionId session, uint32_t pd, MemoryKey key)
      : type_(type), session_(session), pd_(pd), key_(key) {}
  ~MemoryWindow() { Unbind(); }
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  static constexpr uint32_t NameOf(MemoryKey key) { return key.value >> 8; }

  // Binds the window. `region` is the request's region; nullptr: none. Returns false without a
  // change if the request is not allowed.
  bool Bind(const RemoteUser& user, const BindRequest& request, const RegionConfig* region);
  // Invalidates a type 2 window. Returns false unless this user bound it with this key.
  bool Invalidate(const RemoteUser& user, MemoryKey key);
  // Finds the range of the region that `va` and `length` name. Returns false if the key does not
  // allow the access.
  struct Place {
    MemoryKey region;
    uint64_t address = 0;  // in the region's address space
  };
  bool Find(const RemoteUser& user, MemoryKey key, uint32_t access, uint64_t va, uint64_t length,
            Place& place) const;
  void Unbind();
  // Writes the state, or reads it into a new window of the same type, owner and upper key bits
  // (gateway/hand_over). `region_of` returns the region with that key, or nullptr. Once for all
  // workers, which must not use the window meanwhile.
  template <typename RegionOf>
  void HandOver(hand_over::StateStream& state, RegionOf region_of) {
    const MemoryKey region = HandOverKeys(state);
    if (region.value != 0) BindAgain(state, region_of(region));
  }

  MwType type() const { return type_; }
  // Returns the current binding; nothing while the window is not bound.
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
  // Returns the key of the region to which the window that was read is bound; 0: none, or the
  // stream writes.
  MemoryKey HandOverKeys(hand_over::StateStream& state);
  void BindAgain(hand_over::StateStream& state, const RegionConfig* region);

  const MwType type_;
  const SessionId session_;
  const uint32_t pd_;
  mutable std::atomic<bool> taken_{false};  // lock of the members below
  MemoryKey key_;
  MemoryKey region_;
  BoundWindows* bound_ = nullptr;  // count of the bound region; nullptr: not bound
  uint32_t access_ = 0;
  uint64_t address_ = 0;
  uint64_t length_ = 0;
  Qpn qpn_;        // type 2: queue pair that bound it
  SlotHandle qp_;  // type 2: its handle, because another queue pair may get the number later
};

}  // namespace rocegw::verbs
