// SPDX-License-Identifier: Apache-2.0
// Process that receives the descriptors of programs for the daemon. It forks one process for each
// message, which receives the message from the program's connection, judges the descriptor,
// answers, and ends. A program can only hold up the process of its own message, which has nothing
// else: the daemon ends when it is killed, whatever its programs passed.
//
// The processes know nothing of each other. One waits for the next message, and its parent forks
// another when that has come. They end with the daemon.
#pragma once

#include <memory>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/session/attach/descriptor_receiver.h"

namespace rocegw::session {

class ReceiverProcess final : public DescriptorReceiver {
 public:
  // Forks the process. Call before the daemon has threads.
  static StatusOr<std::shared_ptr<ReceiverProcess>> Start();
  // Ends the process, but not those that programs hold up.
  ~ReceiverProcess() override = default;

  PassedDescriptor Take(int socket, const WantedDescriptor& wanted,
                        std::vector<UniqueFd>& left) override;
  // Waits for the end of the message's process.
  void Finish(std::vector<UniqueFd>& left) override;

 private:
  explicit ReceiverProcess(UniqueFd orders) : orders_(std::move(orders)) {}

  const UniqueFd orders_;  // SEQPACKET socket; each message is one order
};

}  // namespace rocegw::session
