// SPDX-License-Identifier: Apache-2.0
// Receives descriptors of programs. The daemon uses a process of its own for it
// (receiver_process.h); in a program's own process the call itself receives.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/session/descriptors/passed_descriptor.h"
#include "gateway/session/descriptors/unread_messages.h"

namespace rocegw::session {

class DescriptorReceiver {
 public:
  virtual ~DescriptorReceiver() = default;

  // Receives the next message of a program's connection, without its bytes, and judges its
  // descriptor. May block, as long as the program likes: called on the thread of the program's call
  // queue only. Call Finish on the same thread with what Take has added to `left`, after the answer
  // was used: it may block, too.
  virtual PassedDescriptor Take(int socket, const WantedDescriptor& wanted,
                                std::vector<UniqueFd>& left) = 0;
  virtual void Finish(std::vector<UniqueFd>& left) = 0;
  // Receives all messages of a connection whose input is shut down, and closes their descriptors:
  // at the cost of one message, however many a program has left. May block, as Take. Returns false
  // if messages are left for lack of descriptors or processes.
  virtual bool Discard(int socket) = 0;

  // Keeps a duplicate of a socket in which programs can leave descriptors: if the daemon ends, the
  // kernel does not release these in one of its threads. Does not wait. Any thread.
  virtual void Keep(int socket) = 0;
  // Ends Keep. No program can have left a descriptor in the socket. Does not wait. Any thread.
  virtual void Release(int socket) = 0;
};

// Receives in the calling thread.
class ReceiverHere final : public DescriptorReceiver {
 public:
  PassedDescriptor Take(int socket, const WantedDescriptor& wanted,
                        std::vector<UniqueFd>& left) override {
    ReceivedDescriptor received = ReceiveAndJudge(socket, wanted);
    std::ranges::move(received.others, std::back_inserter(left));
    return std::move(received.passed);
  }
  void Finish(std::vector<UniqueFd>& left) override { left.clear(); }
  bool Discard(int socket) override { return DiscardUnreadMessages(socket); }
  // The program's own descriptors hold up the program.
  void Keep(int) override {}
  void Release(int) override {}
};

}  // namespace rocegw::session
