// SPDX-License-Identifier: Apache-2.0
// Accepted connection of a program. Unread messages in it may hold descriptors, whose release waits
// for as long as the program likes: they are taken by the receiver before the socket is closed, and
// the receiver keeps a duplicate, so that the end of the daemon does not release them either.
// Movable. Control thread.
#pragma once

#include <memory>
#include <utility>

#include "gateway/base/unique_fd.h"
#include "gateway/session/attach/client_call_queue.h"
#include "gateway/session/descriptors/descriptor_receiver.h"

namespace rocegw::session {

class ProgramConnection {
 public:
  ProgramConnection() = default;
  // `call_queue`: runs the calls that the program may block.
  ProgramConnection(UniqueFd socket, std::shared_ptr<ClientCallQueue> call_queue,
                    std::shared_ptr<DescriptorReceiver> receiver);
  ProgramConnection(ProgramConnection&& other) noexcept = default;
  ProgramConnection& operator=(ProgramConnection&& other) noexcept;
  ~ProgramConnection() { Close(); }

  int get() const { return socket_.get(); }
  // Runs further blocking calls on another call queue.
  void Use(std::shared_ptr<ClientCallQueue> call_queue) { call_queue_ = std::move(call_queue); }
  // Closes the connection, whoever else has it open: the program sees its end at once.
  void Close();

 private:
  UniqueFd socket_;
  std::shared_ptr<ClientCallQueue> call_queue_;
  std::shared_ptr<DescriptorReceiver> receiver_;
};

}  // namespace rocegw::session
