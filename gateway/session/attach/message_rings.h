// SPDX-License-Identifier: Apache-2.0
// Daemon's end of the rings that carry messages of one program in place of its attach socket
// (docs/develop/abi.md#message-rings). The program can write all of the memory at any time: each
// word is loaded once and each message copied out once. A program that breaks the protocol spoils
// its own messages only. Nothing here waits. Control thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
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
  ~MessageRings() { Close(); }
  MessageRings(const MessageRings&) = delete;
  MessageRings& operator=(const MessageRings&) = delete;

  // Returns the descriptor of the memory, for the program.
  int fd() const { return memory_->fd(); }
  // Returns the eventfd by which the program wakes the daemon. The program decides about its value
  // and flags: watch it edge-triggered, and neither read nor write it.
  int wake_fd() const { return wake_.get(); }

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
  // fit, or the program has not taken all messages of the socket.
  bool PutAnswer(std::span<const uint8_t> message);
  // Counts a message that was sent over the socket. None goes into the ring before the program has
  // counted it, too.
  void CountSocketAnswer();
  // Wakes the thread that waits for the answer to this request, if one does. Call when it is there.
  void WakeWaiter(uint64_t request);

  // Ends the use of the rings: the program puts no further request there, and all its threads wait
  // at the socket. Requests that it put there before are still to be taken.
  void Close();
  bool closed() const { return closed_; }

 private:
  MessageRings(std::unique_ptr<shm::Chunk> memory, UniqueFd wake, Charges charges)
      : charges_(std::move(charges)), memory_(std::move(memory)), wake_(std::move(wake)) {}

  rocegw_message_rings& rings() const {
    return *reinterpret_cast<rocegw_message_rings*>(memory_->base());
  }
  // Returns how many requests the ring has, as the program says.
  uint32_t Waiting() const;

  const Charges charges_;
  const std::unique_ptr<shm::Chunk> memory_;
  const UniqueFd wake_;
  uint32_t requests_taken_ = 0;
  uint32_t socket_requests_ = 0;
  uint32_t answers_ = 0;
  uint32_t socket_answers_ = 0;
  uint32_t last_request_ = 0;  // count behind the last request, once closed
  bool closed_ = false;
};

}  // namespace rocegw::session
