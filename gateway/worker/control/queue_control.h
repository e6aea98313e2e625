// SPDX-License-Identifier: Apache-2.0
// Control messages for completion queues and shared receive queues. Each worker has its own ring of
// every completion queue. All queue pairs of a shared receive queue are on one worker, which takes
// receives from it without synchronisation. Belongs to one worker.
#pragma once

#include "gateway/worker/objects/async_events.h"
#include "gateway/worker/objects/completion_events.h"
#include "gateway/worker/objects/session_table.h"

namespace rocegw::worker {

class QueueControl {
 public:
  // The arguments must outlive the object.
  QueueControl(SessionTable& sessions, CompletionEvents& completions, AsyncEvents& events)
      : sessions_(sessions), completions_(completions), events_(events) {}

  ControlReply Do(const LinkCq& body);
  ControlReply Do(const ResizeCq& body);
  ControlReply Do(const ModerateCq& body);
  ControlReply Do(const UnlinkCq& body);
  ControlReply Do(const LinkSrq& body);
  // Queue pairs made with the queue were unlinked before; those of an XRC domain continue without
  // it.
  ControlReply Do(const UnlinkSrq& body);
  ControlReply Do(const ArmSrq& body);
  ControlReply Do(const ResizeSrq& body);
  ControlReply Do(const QuerySrq& body);
  ControlReply Do(const SnapshotSrqs& body);

 private:
  SessionTable& sessions_;
  CompletionEvents& completions_;
  AsyncEvents& events_;
};

}  // namespace rocegw::worker
