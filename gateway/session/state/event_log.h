// SPDX-License-Identifier: Apache-2.0
// What happened that a person may want to know: refusals and their reasons. Repetitions are
// counted, not listed, and what does not fit pushes out what has not happened for longest, so a
// hostile program can neither fill memory nor the log. Owner: session server, control thread.
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

  // Events with the same reason, object and subject ("qps") are one. True: worth a line in the log;
  // so is the first one, and then one every ten seconds.
  bool Add(const std::string& reason, const std::string& object, const std::string& subject,
           const std::string& text, int64_t wall_ns, TimePoint now);

  // The latest first.
  std::vector<EventRow> Rows() const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  struct Entry {
    Key key;
    EventRow row;
    TimePoint said;
  };

  std::list<Entry> entries_;  // the latest first
  std::map<Key, std::list<Entry>::iterator> by_key_;
  uint64_t next_id_ = 1;
};

}  // namespace rocegw::session
