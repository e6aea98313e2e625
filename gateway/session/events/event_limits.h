// SPDX-License-Identifier: Apache-2.0
// Limits of the events of one session: how many event channels it may have, what they are charged,
// and how many events may wait unread. Owner: the session, control thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/base/status.h"
#include "gateway/session/events/event_channel.h"
#include "gateway/session/objects/objects.h"
#include "gateway/tenant/charge.h"

namespace rocegw::session {

class SessionQuota;
struct Services;

class EventLimits {
 public:
  // All arguments outlive the object.
  EventLimits(Services& services, const Objects& objects, SessionQuota& quota)
      : services_(services), objects_(objects), quota_(quota) {}

  // Returns true if the session has the maximum number of event channels.
  bool full() const;
  uint32_t most_channels() const;
  // Creates the sockets of an event channel, charged to the pool; EMFILE.
  StatusOr<EventPair> NewPair(tenant::Charge& descriptors);

  EventBacklog& backlog() { return backlog_; }
  const EventBacklog& backlog() const { return backlog_; }
  // Returns true if more events are unread than an orderly program can have: the session is not
  // read until the program reads its events.
  bool PushBack() const { return backlog_.waiting > MostAhead(); }
  // Returns the number of unread events above which requests are read later.
  size_t MostAhead() const;

 private:
  Services& services_;
  const Objects& objects_;
  SessionQuota& quota_;
  EventBacklog backlog_;
};

}  // namespace rocegw::session
