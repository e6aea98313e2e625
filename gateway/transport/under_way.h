// SPDX-License-Identifier: Apache-2.0
// What the receiving half of a queue pair keeps of messages while they are under way. Queue pairs
// are many and few of them have a message just now, so it comes from their worker (Outbox) and goes
// back when nothing is left in it: whoever is next finds it in the cache. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/growing_ring.h"
#include "gateway/base/spares.h"
#include "gateway/transport/messages_ahead.h"
#include "gateway/transport/resting_ring.h"
#include "gateway/verbs/work_request.h"

namespace rocegw::transport {

struct OpenReceive {
  verbs::ReceiveRequest request;
  uint32_t received = 0;                               // bytes
  verbs::WcStatus status = verbs::WcStatus::kSuccess;  // what it must complete with, if it is bad
  bool closed = false;                                 // its completion is under way
};

// The completion of a receive, until its ticket is done.
struct PendingReceive {
  rocegw_cqe cqe{};
  uint32_t ticket = 0;
};

// Of a receive queue.
struct ReceivesUnderWay {
  GrowingRing<OpenReceive> open;
  // A power of two of entries for each open receive, so that a list never wraps around.
  GrowingRing<rocegw_sge> sges;
  GrowingRing<PendingReceive> pending;

  bool empty() const { return open.empty() && pending.empty(); }
};

// A reply on a channel that has not left.
struct MessageReply {
  uint8_t syndrome = 0;
  uint8_t attempt = 0;
  uint32_t message = 0;
  uint32_t ticket = 0;  // leaves when it is done
  bool alone = false;   // speaks of that message, and of none before it
};

// A READ or atomic that was executed, until it can no longer be asked for.
struct ExecutedMessage {
  bool asked = false;
  bool atomic = false;
  bool known = false;  // the atomic's result
  uint32_t message = 0;
  uint32_t ticket = 0;
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;
  uint32_t sent = 0;
  bool answered = false;
  uint64_t result = 0;
};

// Of a responder on a channel: messages, answers that wait, and those that were given.
struct MessagesUnderWay {
  // No message before it keeps one of strong order waiting: they have taken effect, or have no
  // order. Not before the next that takes effect, once MessageResponder::Advance has run.
  uint32_t ordered = 0;
  GrowingRing<MessageReply> replies;
  MessagesAhead messages;
  // Of a shared receive queue: numbers of those that messages have let go of again.
  std::vector<uint32_t> spare_receives;
  RestingRing<uint32_t> answering;        // indices of those not answered, in their order
  std::vector<ExecutedMessage> executed;  // as many as the peer may have outstanding
};

struct UnderWay {
  Spares<ReceivesUnderWay> receives;
  Spares<MessagesUnderWay> messages;
};

}  // namespace rocegw::transport
