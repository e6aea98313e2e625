// SPDX-License-Identifier: Apache-2.0
#include "examples/kv_store/client.h"

#include <thread>

namespace kv {

std::optional<Message> Client::Ask(const Message& request) {
  const auto end = Clock::now() + kLimit;
  do {
    if (session_ == nullptr || session_->moved()) {
      if (auto session = Session::Connect(places_[at_], std::nullopt, fallback_))
        session_ = std::move(session);
    }
    Message reply;
    if (session_ != nullptr && session_->Ask(request, reply) &&
        (reply.outcome == Outcome::kDone || reply.outcome == Outcome::kAbsent))
      return reply;
    session_.reset();
    at_ = (at_ + 1) % places_.size();
    std::this_thread::sleep_for(Milliseconds(20));
  } while (Clock::now() < end);
  return std::nullopt;
}

}  // namespace kv
