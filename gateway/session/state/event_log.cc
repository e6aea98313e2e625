// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/state/event_log.h"

namespace rocegw::session {

bool EventLog::Add(const std::string& reason, const std::string& object, const std::string& subject,
                   const std::string& text, int64_t wall_ns, TimePoint now) {
  const Key key(reason, object, subject);
  const auto known = by_key_.find(key);
  const bool is_new = known == by_key_.end();
  if (is_new) {
    if (entries_.size() == kMost) {
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
    entries_.push_front({key, {next_id_++, wall_ns, wall_ns, 0, reason, object, ""}, now});
    by_key_[key] = entries_.begin();
  } else {
    entries_.splice(entries_.begin(), entries_, known->second);
  }
  Entry& entry = entries_.front();
  ++entry.row.count;
  entry.row.last_ns = wall_ns;
  entry.row.text = text;
  if (!is_new && now - entry.said < kSayEvery) return false;
  entry.said = now;
  return true;
}

std::vector<EventRow> EventLog::Rows() const {
  std::vector<EventRow> rows;
  rows.reserve(entries_.size());
  for (const Entry& entry : entries_) rows.push_back(entry.row);
  return rows;
}

}  // namespace rocegw::session
