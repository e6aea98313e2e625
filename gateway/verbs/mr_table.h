// SPDX-License-Identifier: Apache-2.0
// One worker's view of the registered memory: key -> region or window, with the checks of every
// access (IBTA 10.6.3). Linked, replaced and unlinked by control messages between bursts; a pointer
// returned here is good until the next of them.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/base/key_map.h"
#include "gateway/verbs/memory_window.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::verbs {

// Where bytes that a peer names lie.
struct RemotePlace {
  uint64_t address = 0;       // in the client
  uint8_t* direct = nullptr;  // in our mapping; nullptr: not all of them
};

class MrTable {
 public:
  // False when the key is there already.
  bool Link(const RegionConfig& region) { return regions_.Insert(region.key.value, region); }
  // The region with that key is another one from now on; false when there is none.
  bool Replace(const RegionConfig& region);
  bool Unlink(MemoryKey key) { return regions_.Erase(key.value); }
  // A window goes by the name in its keys (MemoryWindow::NameOf).
  bool LinkWindow(uint32_t name, MemoryWindow& window) { return windows_.Insert(name, &window); }
  bool UnlinkWindow(uint32_t name) { return windows_.Erase(name); }

  // The region when `key` belongs to the session's `pd`, grants `access` and holds
  // [va, va + length); nullptr otherwise.
  const RegionConfig* Find(MemoryKey key, SessionId session, uint32_t pd, uint32_t access,
                           uint64_t va, uint64_t length) const;
  // The same for an R_Key, which may be a window's.
  std::optional<RemotePlace> FindRemote(const RemoteUser& user, MemoryKey key, uint32_t access,
                                        uint64_t va, uint64_t length) const;

  // An R_Key of a region that grants `access`, whichever part of it is meant. No window does: what
  // it was bound with is about its own part.
  bool GrantsWhole(const RemoteUser& user, MemoryKey key, uint32_t access) const;

  // What work requests do to windows; false: they must not.
  bool Bind(const RemoteUser& user, const BindRequest& request) const;
  bool Invalidate(const RemoteUser& user, MemoryKey key) const;

  size_t size() const { return regions_.size(); }

 private:
  MemoryWindow* FindWindow(MemoryKey key) const {
    MemoryWindow* const* const window = windows_.Find(MemoryWindow::NameOf(key));
    return window == nullptr ? nullptr : *window;
  }

  KeyMap<RegionConfig> regions_;
  KeyMap<MemoryWindow*> windows_;
};

}  // namespace rocegw::verbs
