// SPDX-License-Identifier: Apache-2.0
// The addresses that a worker's channels leave by, each once: a host has few, and its channels many
// peers. Belongs to its ChannelSet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/wire/gid.h"

namespace rocegw::channel {

class LocalAddresses {
 public:
  // Its number here, until it is left as often as it was taken. There are fewer than channels.
  uint16_t Take(const wire::Gid& address) {
    auto place = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.users != 0 && entry.address == address;
    });
    if (place == entries_.end()) {
      place = std::find_if(entries_.begin(), entries_.end(),
                           [](const Entry& entry) { return entry.users == 0; });
      if (place == entries_.end()) place = entries_.insert(place, Entry{});
      place->address = address;
    }
    ++place->users;
    return static_cast<uint16_t>(place - entries_.begin());
  }
  void Leave(uint16_t number) { --entries_[number].users; }
  const wire::Gid& operator[](uint16_t number) const { return entries_[number].address; }
  // Of memory.
  size_t bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    wire::Gid address;
    uint32_t users = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace rocegw::channel
