// SPDX-License-Identifier: Apache-2.0
// Events for a client, one record each, through a pair of SEQPACKET sockets (unix(7)): the client
// polls and reads its end as it would a device's event file. A socket holds only some 280 records,
// so what does not fit waits here and goes out when the client has read. Counts what each object
// has put there, since destroying an object waits until the program has acknowledged that many.
// What a client has not read can be taken back through its end of the pair, of which both have a
// descriptor then. Control thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gateway/base/containers/key_map.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/session/control_loop.h"

namespace rocegw::session {

// Records of one session that wait in the daemon, over all of its channels. A program that lets
// more wait than its objects may have is not asked for further requests (attach_server.h).
struct EventBacklog {
  size_t waiting = 0;
  std::function<void()> on_fewer;  // may be empty
};

struct EventPair {
  UniqueFd ours;
  UniqueFd client;  // to be sent; blocking, as programs expect
};
// A connected pair; what a client writes into its end is refused.
StatusOr<EventPair> MakeEventPair();

class EventChannel {
 public:
  // Names an object whose events are counted together; not 0.
  using Subject = uint64_t;

  // The backlog outlives the channel.
  EventChannel(ControlLoop& loop, EventBacklog& backlog, UniqueFd ours)
      : loop_(loop), backlog_(backlog), ours_(std::move(ours)) {}
  // Of a pair whose client end may come back.
  EventChannel(ControlLoop& loop, EventBacklog& backlog, UniqueFd ours, int client_end);
  ~EventChannel();
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  // So many objects can have events without another allocation.
  void Reserve(size_t subjects) { counts_.Reserve(subjects); }

  // Puts a record on the channel. With `once`, not again while an equal one of the subject waits.
  void Send(Subject subject, std::span<const uint8_t> record, bool once = false);

  // Withdraws what still waits for the subject; yields how many of its records the client could
  // read, and forgets it.
  uint32_t Forget(Subject subject);

  // Whether the descriptor is the client's end of this channel.
  bool IsClientEnd(int descriptor) const;
  // Takes back what the client has not read, from its end: it waits again then, before whatever
  // waits already. Nobody may read there meanwhile, or what is left to read changes its order.
  // ReadUnread may block, while the program reads there into memory that makes it wait: not on the
  // control thread. Hold comes before it, and keeps new records here until TakeBack.
  using SubjectOf = Subject (*)(std::span<const uint8_t> record);
  using Unread = std::vector<std::vector<uint8_t>>;
  void Hold() { held_ = true; }
  static Unread ReadUnread(int client_end);
  void TakeBack(Unread unread, SubjectOf subject_of);
  // Moves what waits, and is `chosen`, to another channel; then sends what is left, as far as the
  // client's end holds it.
  using Choice = std::function<bool(Subject, std::span<const uint8_t> record)>;
  void MoveWaiting(EventChannel& to, const Choice& chosen);

  size_t waiting() const { return waiting_.size(); }

 private:
  struct Record {
    Subject subject;
    std::vector<uint8_t> bytes;
  };
  struct Counts {
    uint32_t sent = 0;
    uint32_t waiting = 0;
  };

  Counts& CountsOf(Subject subject);
  bool TrySend(Subject subject, std::span<const uint8_t> record);
  void Await();
  void Drain();
  // After waiting_ changed.
  void CountWaiting();

  ControlLoop& loop_;
  EventBacklog& backlog_;
  size_t counted_ = 0;  // of waiting_, in the backlog
  UniqueFd ours_;
  std::optional<uint64_t> client_cookie_;  // of the socket that is the client's end
  ControlLoop::WatchId watch_ = 0;
  std::deque<Record> waiting_;
  bool held_ = false;
  KeyMap<Counts, Subject> counts_;
};

}  // namespace rocegw::session
