// SPDX-License-Identifier: Apache-2.0
// Event channel of a client, one record per event, through a pair of SEQPACKET sockets (unix(7)):
// the client polls and reads its end like a device's event file. A socket holds only about 280
// records; further records wait here until the client has read. The channel counts the events of
// each object, since destroying an object waits until the program has acknowledged that many.
// Records that a client has not read can be taken back through the client's end, of which both
// sides then have a descriptor. Control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gateway/base/containers/key_map.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::session {

// Number of one session's records that wait in the daemon, over all its channels. The requests of a
// program that lets more wait than its objects may have are not read (attach_server.h).
struct EventBacklog {
  size_t waiting = 0;
  std::function<void()> on_fewer;  // may be empty
};

struct EventPair {
  UniqueFd ours;
  UniqueFd client;  // end to send to the client; blocking, as programs expect
};
// Creates a connected pair; writing to the client's end is refused.
StatusOr<EventPair> MakeEventPair();

class EventChannel {
 public:
  // Identifies an object whose events are counted together; not 0.
  using Subject = uint64_t;

  // The backlog outlives the channel.
  EventChannel(ControlLoop& loop, EventBacklog& backlog, UniqueFd ours)
      : loop_(loop), backlog_(backlog), ours_(std::move(ours)) {}
  // Creates a channel whose client end may come back.
  EventChannel(ControlLoop& loop, EventBacklog& backlog, UniqueFd ours, int client_end);
  ~EventChannel();
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  // Allocates space for the counts of so many objects.
  void Reserve(size_t subjects) { counts_.Reserve(subjects); }

  // Sends a record. `once`: not if an equal record of the subject waits already.
  void Send(Subject subject, std::span<const uint8_t> record, bool once = false);

  // Withdraws waiting records of the subject and its counts. Returns how many of its records the
  // client could read.
  uint32_t Forget(Subject subject);

  // Returns the SO_COOKIE of the client's end; 0: unknown, which no socket has.
  uint64_t client_cookie() const { return client_cookie_.value_or(0); }
  // Take back the records that the client has not read, from its end, in front of those that wait
  // already. No reader may be active meanwhile, or the order of the rest changes. ReadUnread may
  // block while the program reads there into memory that blocks it: not for the control thread.
  // Hold must be called before; it keeps new records here until TakeBack.
  using SubjectOf = Subject (*)(std::span<const uint8_t> record);
  using Unread = std::vector<std::vector<uint8_t>>;
  void Hold() { held_ = true; }
  static Unread ReadUnread(int client_end);
  void TakeBack(Unread unread, SubjectOf subject_of);
  // Moves the subject's waiting records to another channel, with those of each subject that
  // `brings` names for a record of it, in their order. Then sends the others as far as they fit.
  using Brings = std::function<std::optional<Subject>(std::span<const uint8_t> record)>;
  void MoveWaiting(EventChannel& to, Subject subject, const Brings& brings);

  // Writes the state, or reads it into a new channel (gateway/hand_over). `subjects`: all that may
  // have counts, the same at both ends. A reader sends nothing before the loop runs.
  void HandOver(hand_over::StateStream& state, std::span<const Subject> subjects);
  int fd() const { return ours_.get(); }

  size_t waiting() const { return waiting_.size(); }

 private:
  struct Record;
  using Waiting = std::list<Record>;
  // Waiting records of one subject are chained, so that nothing about it looks at others' records,
  // of which thousands may wait for a slow program.
  struct Record {
    Subject subject;
    std::vector<uint8_t> bytes;
    uint64_t serial = 0;     // grows with each record behind the others
    Waiting::iterator next;  // the subject's next record; end: it is the last
  };
  struct Counts {
    uint32_t sent = 0;
    uint32_t waiting = 0;
    Waiting::iterator first;  // valid if `waiting` is not 0, as is `last`
    Waiting::iterator last;
  };

  Counts& CountsOf(Subject subject);
  // Puts a record behind the others.
  void Push(Subject subject, std::vector<uint8_t> bytes);
  // Chains the record as the subject's last or first one.
  void ChainLast(Waiting::iterator record);
  void ChainFirst(Waiting::iterator record);
  // Removes the subject's waiting records, oldest first.
  void TakeWaiting(Subject subject, Waiting& taken);
  bool TrySend(Subject subject, std::span<const uint8_t> record);
  void Await();
  void Drain();
  // Call after a change of waiting_.
  void CountWaiting();

  ControlLoop& loop_;
  EventBacklog& backlog_;
  size_t counted_ = 0;  // part of waiting_ in the backlog count
  UniqueFd ours_;
  std::optional<uint64_t> client_cookie_;  // socket cookie of the client's end
  ControlLoop::WatchId watch_ = 0;
  Waiting waiting_;
  uint64_t serial_ = uint64_t{1} << 32;  // records that come back get lower ones
  bool held_ = false;
  KeyMap<Counts, Subject> counts_;
};

}  // namespace rocegw::session
