// SPDX-License-Identifier: Apache-2.0
// State that a receiver needs only while it has messages in flight. Few of a worker's many queue
// pairs have any at one time. The state therefore comes from an object pool of the worker (Outbox)
// and goes back when it is empty; the next user finds it in the cache. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/containers/object_pool.h"
#include "gateway/transport/message/messages_ahead.h"
#include "gateway/transport/queues/resting_ring.h"
#include "gateway/verbs/work_request.h"

namespace rocegw::transport {

struct OpenReceive {
  verbs::ReceiveRequest request;
  uint32_t received = 0;  // bytes
  // Status that it must complete with, if it is bad.
  verbs::WcStatus status = verbs::WcStatus::kSuccess;
  bool closed = false;  // its completion is pending
};

// Completion of a receive, until its ticket is done.
struct PendingReceive {
  rocegw_cqe cqe{};
  uint32_t ticket = 0;
};

// State of a receive queue.
struct ReceivesInFlight {
  GrowingRing<OpenReceive> open;
  // A power of two of entries for each open receive, so that an SGE list never wraps around.
  GrowingRing<rocegw_sge> sges;
  GrowingRing<PendingReceive> pending;

  bool empty() const { return open.empty() && pending.empty(); }
};

// Reply on a channel that has not left.
struct MessageReply {
  uint8_t syndrome = 0;
  uint8_t attempt = 0;
  uint32_t message = 0;
  uint32_t ticket = 0;  // the reply leaves when it is done
  bool alone = false;   // answers that message only, not the ones before it
};

// READ or atomic that was executed, until the peer can no longer ask for it.
struct ExecutedMessage {
  bool asked = false;
  bool atomic = false;
  bool known = false;  // the atomic's result is known
  uint32_t message = 0;
  uint32_t ticket = 0;
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;
  uint32_t sent = 0;
  bool answered = false;
  uint64_t result = 0;
};

// State of a responder on a channel: messages, waiting replies, and executed requests.
struct MessagesInFlight {
  // Number of the first message that may still keep a later one of strong order waiting: all
  // earlier ones took effect or have no order. Never less than the next message to take effect,
  // once MessageResponder::Advance has run.
  uint32_t ordered = 0;
  GrowingRing<MessageReply> replies;
  MessagesAhead messages;
  // Shared receive queue: receives that messages took and released without using them.
  std::vector<uint32_t> spare_receives;
  RestingRing<uint32_t> answering;        // indices in `executed` of unanswered requests, in order
  std::vector<ExecutedMessage> executed;  // as many as the peer may have outstanding
};

struct InFlight {
  ObjectPool<ReceivesInFlight> receives;
  ObjectPool<MessagesInFlight> messages;
};

}  // namespace rocegw::transport
