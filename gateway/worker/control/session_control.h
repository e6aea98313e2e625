// SPDX-License-Identifier: Apache-2.0
// Control messages for sessions: a session is added to, and removed from, all parts of a worker
// that keep something of it. Belongs to one worker.
#pragma once

#include "gateway/worker/channels/channel_bindings.h"
#include "gateway/worker/memory/memory_executor.h"
#include "gateway/worker/objects/request_times.h"
#include "gateway/worker/send/doorbell_scan.h"

namespace rocegw::worker {

// Adds a session's eventfd to the set that the worker's thread waits on, or removes it. A function
// of nullptr does nothing.
struct WakeWatch {
  void (*watch)(void* context, int fd, SessionId session, bool add) = nullptr;
  void* context = nullptr;

  void Set(const LinkSession& link, bool add) const {
    if (watch != nullptr && link.wake_fd >= 0) watch(context, link.wake_fd, link.session, add);
  }
};

class SessionControl {
 public:
  // Parts of the worker that the handlers use; they must outlive it.
  struct Uses {
    WakeWatch watch;
    SessionTable& sessions;
    Scheduler& scheduler;
    TransmitQueue& transmit;
    MemoryExecutor& memory;
    StagedFrames& staged;
    ChannelBindings& bindings;
    DoorbellScan& doorbells;
    RequestTimes& times;
    const Round& round;
  };
  explicit SessionControl(const Uses& uses) : uses_(uses) {}

  ControlReply Do(const LinkSession& body);
  ControlReply Do(const UnlinkSession& body);
  ControlReply Do(const UseCopier& body);
  ControlReply Do(const AddDoorbellPage& body);

 private:
  const Uses uses_;
};

}  // namespace rocegw::worker
