// SPDX-License-Identifier: Apache-2.0
// Interface of an endpoint for its group and its tombstone, besides what every queue pair has.
// Belongs to one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/transport/endpoint/message_name.h"
#include "gateway/transport/queue_pair.h"

namespace rocegw::transport {

class EndpointTombstone;

class EndpointQueuePair : public QueuePair {
 public:
  EndpointQueuePair* endpoint() override { return this; }

  // Returns the number of receives that are free for new messages.
  virtual uint32_t receives_left() const = 0;
  // Returns true if the message has begun to arrive here, in any attempt.
  virtual bool HasBegun(const MessageName& message) const = 0;
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
