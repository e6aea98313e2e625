// SPDX-License-Identifier: Apache-2.0
// Local addresses of a worker's channels, each stored once with a count: a host has few addresses,
// its channels have many peers. Belongs to its ChannelSet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/wire/gid.h"

namespace rocegw::channel {

class LocalAddresses {
 public:
  // Returns the index of an address and counts one more use; valid until all uses are released.
  // There are fewer addresses than channels.
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
  // Bytes of memory.
  size_t bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    wire::Gid address;
    uint32_t users = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace rocegw::channel
