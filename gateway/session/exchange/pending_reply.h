// SPDX-License-Identifier: Apache-2.0
// Reply that a session owes for its current request: exactly one, sent or dropped. Control thread.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/invariant.h"
#include "gateway/base/time.h"
#include "gateway/session/exchange/request.h"

namespace rocegw::session {

class PendingReply {
 public:
  // Begins a request at `now`. None may be owed.
  void Begin(const Request& request, TimePoint now) {
    owed_ = Owed{request.header.type, request.header.request_id,
                 request.As<rocegw_object_request>().handle};
    began_ = now;
  }
  bool owed() const { return owed_.has_value(); }
  TimePoint began() const { return began_; }
  // Returns true if the client waits for the reply.
  bool awaited() const {
    return owed_.has_value() && (owed_->request_id != 0 || owed_->type == ROCEGW_MSG_HELLO);
  }
  // Type of the request, and its first argument; only while a reply is owed.
  uint32_t type() const { return owed_->type; }
  uint32_t subject() const { return owed_->subject; }

  // Names the request in the reply, which then is not owed any more. Returns false if it was not.
  [[nodiscard]] bool Complete(rocegw_reply& reply) {
    if (!ROCEGW_INVARIANT(owed_.has_value(), "session-one-reply-per-request")) return false;
    reply.type = owed_->type;
    reply.request_id = owed_->request_id;
    owed_.reset();
    return true;
  }
  // No reply is sent: the session ends.
  void Drop() { owed_.reset(); }

 private:
  struct Owed {
    uint32_t type;
    uint64_t request_id;
    uint32_t subject;  // first argument of most requests
  };

  std::optional<Owed> owed_;
  TimePoint began_;
};

}  // namespace rocegw::session
