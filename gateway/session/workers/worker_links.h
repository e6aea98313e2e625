// SPDX-License-Identifier: Apache-2.0
// Links of one session to all workers: per worker a line of shared memory, the descriptor that the
// program wakes it by, and pages of doorbells. Owner: the session, control thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/session/attach/message_socket.h"
#include "gateway/session/events/doorbells.h"
#include "gateway/session/objects/object_release.h"
#include "gateway/session/workers/worker_requests.h"
#include "gateway/shm/segment.h"

namespace rocegw::session {

class WorkerLinks {
 public:
  // All arguments outlive the object.
  WorkerLinks(SessionId id, Services& services, SessionQuota& quota, SessionSegment& segment,
              ClientMemory& memory);
  // All workers have unlinked the session.
  ~WorkerLinks();
  WorkerLinks(const WorkerLinks&) = delete;
  WorkerLinks& operator=(const WorkerLinks&) = delete;

  bool linked() const { return linked_; }
  Doorbells& doorbells() { return doorbells_; }

  // Registers the session with all workers, once. `answered` gets 0, or the errno of a worker, when
  // all have answered. An error that this returns leaves the session unlinked: no memory, no
  // descriptor, no thread for the copier.
  Status Link(std::function<void(int error)> answered);
  // Tells the client the line and the wake descriptor of each worker.
  void AnnounceTo(MessageSink& sink) const;
  // Adds a page of doorbells on a worker; ENOMEM.
  Status AddDoorbellPage(WorkerIndex worker);

  // Takes the session from all workers; `join` is released when they have answered.
  void Unlink(const Join& join);
  // Closes what is left when they have.
  void Release();

  // Hand-over to a gateway that takes over (hand_over/links_state.cc).
  void Offer(OfferedFds& fds) const;
  // `copies`: links that are read need a copier.
  void HandOver(hand_over::StateStream& state, InheritedFds* inherited, bool copies);
  // Links a session that was read; `answered` is called for each answer of a worker.
  void LinkAgain(const std::function<void(const worker::ControlReply&)>& answered);

 private:
  worker::LinkSession LinkOf(WorkerIndex worker) const;

  const SessionId id_;
  Services& services_;
  SessionQuota& quota_;
  SessionSegment& segment_;
  ClientMemory& memory_;
  Doorbells doorbells_;
  bool linked_ = false;
  shm::Block lines_;  // rocegw_worker_line per worker
  std::vector<UniqueFd> wake_fds_;
};

}  // namespace rocegw::session
