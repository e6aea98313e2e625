// SPDX-License-Identifier: Apache-2.0
// Interface of an endpoint for its group and its tombstone, besides what every queue pair has.
// Belongs to one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gateway/transport/endpoint/endpoint_state.h"
#include "gateway/transport/endpoint/message_name.h"
#include "gateway/transport/queue_pair.h"

namespace rocegw::transport {

class EndpointTombstone;

class EndpointQueuePair : public QueuePair {
 public:
  EndpointQueuePair* endpoint() override { return this; }

  // Changes the state. Returns 0, or EINVAL without any change: the endpoint is not ready yet, or
  // in error, or no program can ask for that state. `notify`: kSqDrained is raised once, when
  // SUSPENDED has no request under way, or DRAINING neither a request nor a message of others. A
  // later change cancels the event.
  virtual int Move(Outbox& outbox, EndpointState to, bool notify, TimePoint now) = 0;
  virtual EndpointStatus status() const = 0;
  // Returns true if messages that have not begun here may be delivered.
  virtual bool takes_messages() const = 0;
  // Returns the number of receives that are free for new messages.
  virtual uint32_t receives_left() const = 0;
  // Returns the newest attempt of the message that has begun to arrive here; nothing: none has.
  // The attempt in `message` does not matter.
  virtual std::optional<uint8_t> Begun(const MessageName& message) const = 0;
  // Appends the messages of its group that have begun to arrive here.
  virtual void ListBegun(std::vector<MessageName>& begun) const = 0;
  // Returns the tombstone of an endpoint that is about to be destroyed.
  virtual std::unique_ptr<EndpointTombstone> MakeTombstone() const = 0;

 protected:
  using QueuePair::QueuePair;
};

// Makes an endpoint: messages to and from any endpoint, by channels only.
std::unique_ptr<EndpointQueuePair> MakeEndpoint(const verbs::QpConfig& config);

}  // namespace rocegw::transport
