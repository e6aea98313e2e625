// SPDX-License-Identifier: Apache-2.0
// Daemon's end of the rings that carry messages of one program in place of its attach socket
// (docs/develop/abi.md#message-rings). The program can write all of the memory at any time: each
// word is loaded once and each message copied out once. A program that breaks the protocol spoils
// its own messages only. Nothing here waits or makes a system call, but for Create. Control thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/status.h"
#include "gateway/shm/chunk.h"
#include "gateway/tenant/charge.h"

namespace rocegw::session {

class MessageRings {
 public:
  // Amounts that the rings take from their pool.
  struct Charges {
    tenant::Charge memory;
    tenant::Charge descriptors;
  };

  static uint64_t MemoryBytes();
  // Creates rings that the daemon does not look at yet. ENOMEM, EMFILE.
  static StatusOr<std::unique_ptr<MessageRings>> Create(Charges charges);
  ~MessageRings() { SetAwake(false); }
  MessageRings(const MessageRings&) = delete;
  MessageRings& operator=(const MessageRings&) = delete;

  // Returns the descriptor for the program.
  int fd() const { return memory_->fd(); }

  // Says if the daemon looks at the requests without being woken. A request that is put into the
  // ring before is found by HasRequest behind the call.
  void SetAwake(bool awake);
  bool HasRequest() const;
  enum class Taken : uint8_t { kNothing, kMessage, kBroken };
  struct Request {
    Taken taken = Taken::kNothing;
    size_t length = 0;
    const char* reason = "";
  };
  using Buffer = std::array<uint8_t, ROCEGW_RING_MESSAGE_MAX>;
  // Copies the next request to the buffer.
  Request TakeRequest(Buffer& buffer);
  // Counts a request that came over the socket, when it is executed. The program puts nothing into
  // the ring while it has requests in the socket.
  void CountSocketRequest();

  // Puts an answer into the ring. Returns false if it must be sent over the socket: it does not
  // fit, or the program does not look at the ring.
  bool PutAnswer(std::span<const uint8_t> message);
  // Returns true if the program waits at the socket, maybe since the last PutAnswer.
  bool client_sleeps() const;
  // Counts a message that is sent over the socket. None goes into the ring before the program has
  // counted it, too.
  void CountSocketAnswer();

  // Ends the use of the rings: the program puts no further request there. Those that it put there
  // before are still to be taken.
  void Close();
  bool closed() const { return closed_; }

 private:
  MessageRings(std::unique_ptr<shm::Chunk> memory, Charges charges)
      : charges_(std::move(charges)), memory_(std::move(memory)) {}

  rocegw_message_rings& rings() const {
    return *reinterpret_cast<rocegw_message_rings*>(memory_->base());
  }
  // Returns how many requests the ring has, as the program says.
  uint32_t Waiting() const;

  const Charges charges_;
  const std::unique_ptr<shm::Chunk> memory_;
  uint32_t requests_taken_ = 0;
  uint32_t socket_requests_ = 0;
  uint32_t answers_ = 0;
  uint32_t socket_answers_ = 0;
  uint32_t last_request_ = 0;  // count behind the last request, once closed
  bool closed_ = false;
};

}  // namespace rocegw::session
