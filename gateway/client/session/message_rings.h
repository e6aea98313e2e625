// SPDX-License-Identifier: Apache-2.0
// Program's end of the rings that carry messages in place of the attach socket
// (docs/develop/abi.md#message-rings). Threads put requests under the session's send lock, and take
// answers under its lock; each waits on a futex of its own.
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
    kNeedsWake  // the request is in the ring, and the caller must wake the daemon
  };
  Put PutRequest(const void* message, uint32_t size);
  // Returns false if the program closed the descriptor for it.
  bool WakeDaemon() const;
  // Call before a message is sent over the socket: further ones follow there until the daemon has
  // taken it.
  void CountSocketRequest() { ++socket_requests_; }

  // Functions for the thread that has the session's lock.

  // Takes the eventfd that wakes the daemon, and sets *descriptor to -1. Returns false if it is
  // none.
  bool SetWake(int* descriptor);
  // Maps the rings of the answer to USE_RINGS, in place of earlier ones, which are closed. Returns
  // false if the answer is not usable.
  bool Map(int descriptor, uint32_t bytes);
  // Copies the next answer and its size. Returns false if there is none.
  bool TakeAnswer(void* message, uint32_t* size);
  // Call for each message of the socket when all answers in the ring were taken.
  void CountSocketAnswer();

  // Functions for any thread.

  // Returns true until the daemon closes the rings.
  bool in_use() const;
  bool HasAnswer() const;
  // Returns true if answers are in the socket, or soon are.
  bool SocketHasAnswers() const;
  // Says that the thread of the request is about to sleep in Wait. An answer from before, or the
  // end of the rings, is not announced.
  void BeginWait(uint64_t request);
  // Sleeps until EndWait, of this process or of the daemon. Returns false after `most_ns`.
  bool Wait(uint64_t request, int64_t most_ns);
  void EndWait(uint64_t request);

  // Makes the memory private in a forked child.
  void CutOff();
  void Unmap();

 private:
  void CloseWake();

  rocegw_message_rings* rings_ = nullptr;
  int wake_fd_ = -1;  // eventfd of the daemon, with the library's mark (rings/doorbell.h)
  bool open_ = false;
  uint32_t requests_ = 0;
  uint32_t socket_requests_ = 0;
  uint32_t answers_taken_ = 0;
  uint32_t socket_answers_ = 0;
};

}  // namespace rocegw::client
