// SPDX-License-Identifier: Apache-2.0
// Registered memory as one worker knows it: a map from key to region or window, with the checks of
// every access (IBTA 10.6.3). Control messages link, replace and unlink entries between bursts; a
// returned pointer is valid until the next of them. Belongs to one worker.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/base/containers/key_map.h"
#include "gateway/verbs/memory_window.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::verbs {

// Location of bytes that a peer names.
struct RemotePlace {
  uint64_t address = 0;       // in the client's address space
  uint8_t* direct = nullptr;  // in the gateway's mapping; nullptr: not all of them are mapped
};

class MrTable {
 public:
  // Returns false if the key exists.
  bool Link(const RegionConfig& region) { return regions_.Insert(region.key.value, region); }
  // Replaces the region with that key. Returns false if there is none.
  bool Replace(const RegionConfig& region);
  bool Unlink(MemoryKey key) { return regions_.Erase(key.value); }
  // Windows are stored by the upper bits of their keys (MemoryWindow::NameOf).
  bool LinkWindow(uint32_t name, MemoryWindow& window) { return windows_.Insert(name, &window); }
  bool UnlinkWindow(uint32_t name) { return windows_.Erase(name); }

  // Returns the region if `key` belongs to the session's `pd`, grants `access` and contains [va, va
  // + length); else nullptr.
  const RegionConfig* Find(MemoryKey key, SessionId session, uint32_t pd, uint32_t access,
                           uint64_t va, uint64_t length) const;
  // Finds the location by an R_Key, which may belong to a region or a window.
  std::optional<RemotePlace> FindRemote(const RemoteUser& user, MemoryKey key, uint32_t access,
                                        uint64_t va, uint64_t length) const;

  // Returns true if the R_Key belongs to a region that grants `access` to every byte. Always false
  // for windows, whose rights concern their part only.
  bool GrantsWhole(const RemoteUser& user, MemoryKey key, uint32_t access) const;

  // Execute bind and invalidate work requests. They return false if the request is not allowed.
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
