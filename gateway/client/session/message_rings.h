// SPDX-License-Identifier: Apache-2.0
// Program's end of the rings that carry messages in place of the attach socket
// (docs/develop/abi.md#message-rings). Threads put requests under the session's send lock; one
// thread at a time reads answers. Zero-filled memory is an object without rings.
#pragma once

#include <cstdint>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::client {

class MessageRings {
 public:
  // Functions for the thread that has the send lock.

  // Forgets the messages that were sent over the socket: call behind USE_RINGS.
  void RestartCount() { socket_requests_ = 0; }
  // Puts requests into the rings from now on, if there are any.
  void Open() { open_ = rings_ != nullptr; }
  bool open() const { return __atomic_load_n(&open_, __ATOMIC_RELAXED); }
  enum class Put {
    kNot,       // the request must be sent over the socket
    kIs,        // the daemon takes the request
    kNeedsWake  // the request is in the ring, and the daemon sleeps
  };
  Put PutRequest(const void* message, uint32_t size);
  // Call before a message is sent over the socket: further ones follow there until the daemon has
  // taken it.
  void CountSocketRequest() { ++socket_requests_; }

  // Functions for the thread that reads.

  // Maps the rings of the answer to USE_RINGS, in place of earlier ones, which are closed.
  void Map(int descriptor, uint32_t bytes);
  // Copies the next answer and its size. Returns false if there is none.
  bool TakeAnswer(void* message, uint32_t* size);
  // Returns true if messages may come over the socket.
  bool MayUseSocket() const;
  // Call for each message of the socket when all answers in the ring were taken.
  void CountSocketAnswer();
  // Says if the reading thread looks at the ring. An answer from before is found by TakeAnswer.
  void SetAwake(bool awake);

  // Makes the memory private in a forked child.
  void CutOff();
  void Unmap();

 private:
  rocegw_message_rings* rings_;
  bool open_;
  uint32_t requests_;
  uint32_t socket_requests_;
  uint32_t answers_taken_;
  uint32_t socket_answers_;
  bool awake_;
};

}  // namespace rocegw::client
