// SPDX-License-Identifier: Apache-2.0
// Cache of the link layer's answers for one queue, so that the packet path takes no lock: direct
// mapped by destination, cleared when the link layer's version changes. Belongs to one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gateway/port/link_layer.h"

namespace rocegw::port {

class NeighbourCache {
 public:
  explicit NeighbourCache(LinkLayer& link) : link_(link) {}

  // Unknown destinations are not cached: the next call asks again.
  Reach Resolve(const wire::Gid& destination, PoolTag pool, MacAddress& mac) {
    const uint64_t version = link_.version();
    Entry& entry = entries_[IndexOf(destination)];
    if (entry.version != version || entry.destination != destination) {
      entry.destination = destination;
      entry.reach = link_.Resolve(destination, pool, entry.mac);
      entry.version = entry.reach == Reach::kUnknown ? 0 : version;
    }
    mac = entry.mac;
    return entry.reach;
  }

  bool IsOwn(const wire::Gid& address) {
    const uint64_t version = link_.version();
    if (own_version_ != version) {
      own_ = link_.OwnAddresses();
      own_version_ = version;
    }
    for (const wire::Gid& own : own_) {
      if (own == address) return true;
    }
    return false;
  }

 private:
  static constexpr size_t kEntries = 1024;
  struct Entry {
    wire::Gid destination;
    MacAddress mac{};
    Reach reach = Reach::kUnknown;
    uint64_t version = 0;
  };

  static size_t IndexOf(const wire::Gid& gid) {
    uint64_t low = 0;
    std::memcpy(&low, gid.bytes.data() + 8, sizeof low);
    return (low * 0x9E3779B97F4A7C15U) >> 54;
  }

  LinkLayer& link_;
  std::array<Entry, kEntries> entries_{};
  std::vector<wire::Gid> own_;
  uint64_t own_version_ = 0;
};

}  // namespace rocegw::port
