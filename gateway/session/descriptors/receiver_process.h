// SPDX-License-Identifier: Apache-2.0
// Process that receives the descriptors of programs for the daemon. It forks processes, each of
// which receives a message from a program's connection, judges the descriptor, and answers; or it
// discards all messages of a connection that is closed. A program can only hold up the process of
// its own message, which has nothing else: the daemon ends when it is killed, whatever its programs
// passed.
//
// The processes know nothing of each other. One waits for the next message. If that passes what is
// wanted, whose close does not wait, the process takes the next message, too. Otherwise it ends;
// the parent forks another at its end, or when it takes long. They end with the daemon. One more
// process keeps the sockets (socket_keeper.h).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/session/descriptors/descriptor_receiver.h"
#include "gateway/session/descriptors/socket_keeper.h"

namespace rocegw::session {

class ReceiverProcess final : public DescriptorReceiver {
 public:
  // Starts the processes. Call before the daemon has threads.
  static StatusOr<std::shared_ptr<ReceiverProcess>> Start();
  // Ends the processes, but not those that programs hold up.
  ~ReceiverProcess() override = default;

  PassedDescriptor Take(int socket, const WantedDescriptor& wanted,
                        std::vector<UniqueFd>& left) override;
  // Waits for the end of the message's process.
  void Finish(std::vector<UniqueFd>& left) override;
  // Waits for the end of the process that discards the messages.
  bool Discard(int socket) override;

  void Keep(int socket) override { keeper_.Keep(socket); }
  void Release(int socket) override { keeper_.Release(socket); }

 private:
  ReceiverProcess(UniqueFd orders, UniqueFd kept)
      : orders_(std::move(orders)), keeper_(std::move(kept)) {}

  const UniqueFd orders_;  // SEQPACKET socket; each message is one order
  SocketKeeper keeper_;
};

}  // namespace rocegw::session
