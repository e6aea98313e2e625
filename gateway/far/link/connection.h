// SPDX-License-Identifier: Apache-2.0
// Connection of either side to the other: an identifier of librdmacm with its queue pair, and the
// buffers of its messages. One thread at a time, except where a function says otherwise.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "gateway/base/status.h"
#include "gateway/far/link/protocol.h"

namespace rocegw::far {

using Clock = std::chrono::steady_clock;

class Connection;

// Work request identifiers are pointers to these.
struct Completable {
  enum class Kind : uint8_t { kTransfer, kSentMessage, kReceivedMessage };
  Kind kind = Kind::kTransfer;
  Connection* connection = nullptr;
};

class Connection {
 public:
  static constexpr uint32_t kMessages = 16;  // buffers in each direction

  // Waits end with ECANCELED when `cancel_fd` is readable; -1: never.
  explicit Connection(int cancel_fd = -1) : cancel_fd_(cancel_fd) {}
  // Takes over the identifier of a connection request.
  explicit Connection(rdma_cm_id* id) : id_(id) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Finds the device that reaches the host. Waits until the deadline.
  Status Resolve(const std::string& host, const std::string& port, Clock::time_point deadline);
  ibv_context* context() const { return id_->verbs; }

  struct Depth {
    uint32_t sends = 128;  // work requests of the caller, besides messages
    uint32_t segments = 1;
  };
  // Makes the queue pair and posts the buffers for messages.
  Status MakeQueuePair(ibv_pd* pd, ibv_cq* cq, Depth depth);
  // Connects as a client. Waits until the deadline. A refusal of the donor is its error.
  StatusOr<Welcome> Connect(const Hello& hello, Clock::time_point deadline);
  // Accepts as a server; the event ESTABLISHED follows.
  Status Accept(const Welcome& welcome);

  // Descriptor that is readable when an event of the connection arrives (client).
  int event_fd() const { return channel_ != nullptr ? channel_->fd : -1; }
  // Takes the waiting events. Returns whether one of them ends the connection (client).
  bool TakeEvents();

  // Posts a chain of work requests; any thread. Returns 0 or an errno, and the first request that
  // was not posted.
  int Post(ibv_send_wr* chain, ibv_send_wr** bad);
  // Sends a message; any thread. EAGAIN: all buffers are in use.
  int Send(const Message& message);
  // The work request of a message has completed, with whatever status; any thread. The buffer of a
  // sent message is free again.
  void OnCompletion(const Completable& buffer);
  // Returns the message, or nullopt if its bytes are none. Call Rearm when it is handled.
  std::optional<Message> Received(const Completable& buffer, uint32_t bytes) const;
  int Rearm(const Completable& buffer);

  // Whether the device has completed all messages that were sent; any thread.
  bool AreMessagesSent();
  // Stops all transfers: the device completes them with an error.
  void Abort();
  // Whether no message waits for its completion; any thread. A completion names memory of this
  // object, and soft-RoCE leaves completions of a queue pair in the completion queue when the queue
  // pair is destroyed: destroy the object when it is idle, or else after a time.
  bool idle();
  // Destroys the queue pair. Nothing of it completes afterwards, but what was polled before, and on
  // soft-RoCE what is in the completion queue.
  void DestroyQueuePair();

  rdma_cm_id* id() const { return id_; }

 private:
  StatusOr<rdma_cm_event*> Expect(rdma_cm_event_type type, Clock::time_point deadline);
  Status WaitFor(rdma_cm_event_type type, Clock::time_point deadline);

  const int cancel_fd_ = -1;
  rdma_event_channel* channel_ = nullptr;  // client
  rdma_cm_id* id_ = nullptr;
  ibv_mr* messages_mr_ = nullptr;
  std::mutex post_mutex_;  // guards the queue pair's existence and both sets of buffers
  std::array<MessageBytes, 2 * kMessages> messages_{};  // received, then sent
  std::array<Completable, 2 * kMessages> buffers_;
  static constexpr uint32_t kAllBuffers = (uint32_t{1} << kMessages) - 1;
  uint32_t free_sends_ = kAllBuffers;  // bit by buffer
  uint32_t armed_ = 0;                 // buffers that wait for a message; bit by buffer
};

}  // namespace rocegw::far
