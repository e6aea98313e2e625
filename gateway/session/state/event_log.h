// SPDX-License-Identifier: Apache-2.0
// Log of events for operators: refusals with their reasons. Repetitions are counted, not listed,
// and a new event replaces the one that has not occurred for longest, so a hostile program can fill
// neither memory nor the log. Owner: session server, control thread.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/session/state/state_rows.h"

namespace rocegw::session {

class EventLog {
 public:
  static constexpr size_t kMost = 256;
  static constexpr Duration kSayEvery = Seconds(10);

  // Adds an event; those with the same reason, object and subject ("qps") are combined. Returns
  // true if it deserves a line in the log: the first one, and then one every ten seconds.
  bool Add(const std::string& reason, const std::string& object, const std::string& subject,
           const std::string& text, int64_t wall_ns, TimePoint now);

  // Returns the events, latest first.
  std::vector<EventRow> Rows() const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  struct Entry {
    Key key;
    EventRow row;
    TimePoint said;
  };

  std::list<Entry> entries_;  // latest first
  std::map<Key, std::list<Entry>::iterator> by_key_;
  uint64_t next_id_ = 1;
};

}  // namespace rocegw::session
