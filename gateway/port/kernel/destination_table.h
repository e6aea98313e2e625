// SPDX-License-Identifier: Apache-2.0
// What is known of destinations, bounded. Programs send to any address, so most destinations may be
// those of a scan: one without a neighbour makes room first, else the one that was looked up
// longest ago. Destinations that were never asked about stand in a queue of their own. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "gateway/port/frame.h"
#include "gateway/port/link_layer.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

class DestinationTable {
 public:
  struct Answer {
    Reach reach = Reach::kUnknown;
    MacAddress mac{};
    bool operator==(const Answer&) const = default;
  };

  explicit DestinationTable(size_t most) : most_(most) {}

  // Returns the answer, which is kUnknown for a destination that this call adds. *added: whether it
  // did.
  Answer LookUp(const wire::Gid& destination, bool* added);
  // Records an answer about a destination that is still in the table. Returns true if it is new.
  bool Set(const wire::Gid& destination, const Answer& answer);

  // Returns destinations that were never asked about, oldest first, and takes them from the queue.
  std::vector<wire::Gid> TakeFresh(size_t most);
  // Returns all destinations, or those without a neighbour.
  std::vector<wire::Gid> List(bool all) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Answer answer;
    uint64_t used = 0;  // number of the last look-up
  };
  using Entries = std::map<wire::Gid, Entry>;
  // In the order in which destinations make room.
  using Order = std::set<std::tuple<bool, uint64_t, wire::Gid>>;

  static Order::value_type RankOf(const Entries::value_type& entry) {
    return {entry.second.answer.reach == Reach::kNeighbour, entry.second.used, entry.first};
  }

  const size_t most_;
  uint64_t look_ups_ = 0;
  Entries entries_;
  Order order_;
  std::map<uint64_t, wire::Gid> fresh_;  // by number of the look-up that added them
};

}  // namespace rocegw::port
