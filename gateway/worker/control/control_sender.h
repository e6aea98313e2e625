// SPDX-License-Identifier: Apache-2.0
// Messages from a worker to the control thread. Messages that do not fit into the ring wait here,
// in order, and datagrams never displace them. Belongs to one worker.
#pragma once

#include <cstdint>
#include <deque>

#include "gateway/worker/control/worker_link.h"

namespace rocegw::worker {

class ControlSender {
 public:
  // The link must outlive the sender.
  explicit ControlSender(WorkerLink& link) : link_(link) {}

  // Sends a message that must not be lost.
  void Notify(WorkerMessage message);
  // Answers the message with that cookie; 0: the control thread wants no answer.
  void Reply(uint64_t cookie, ControlReply reply);
  // Sends a datagram, which may be lost. Returns false if there is no space.
  bool SendDatagram(const MadReceived& mad);
  // Moves waiting messages into the ring. Returns true if there was space for one.
  bool SendWaiting();
  // Wakes the control thread if messages were sent since the last call.
  void Wake();

  bool has_waiting() const { return !waiting_.empty(); }

 private:
  WorkerLink& link_;
  std::deque<WorkerMessage> waiting_;
  bool wake_ = false;
};

}  // namespace rocegw::worker
