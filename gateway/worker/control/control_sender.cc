// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/control/control_sender.h"

#include <unistd.h>

#include <atomic>
#include <utility>

namespace rocegw::worker {

void ControlSender::Notify(WorkerMessage message) {
  if (!waiting_.empty() || !link_.to_control.Push(std::move(message))) {
    // A full ring has not moved the message.
    waiting_.push_back(std::move(message));  // NOLINT(bugprone-use-after-move)
  }
  wake_ = true;
}

void ControlSender::Reply(uint64_t cookie, ControlReply reply) {
  if (cookie != 0) Notify({cookie, std::move(reply)});
}

bool ControlSender::SendDatagram(const MadReceived& mad) {
  if (!waiting_.empty() || !link_.to_control.Push({0, mad})) return false;
  wake_ = true;
  return true;
}

bool ControlSender::SendWaiting() {
  bool sent = false;
  while (!waiting_.empty() && link_.to_control.Push(std::move(waiting_.front()))) {
    waiting_.pop_front();
    sent = wake_ = true;
  }
  return sent;
}

void ControlSender::Wake() {
  if (!wake_) return;
  wake_ = false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (link_.control_awake.load(std::memory_order_relaxed)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(link_.control_wake_fd, &one, sizeof one);
}

}  // namespace rocegw::worker
