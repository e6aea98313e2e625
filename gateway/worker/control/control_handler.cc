// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/control/control_handler.h"

#include <type_traits>
#include <utility>

namespace rocegw::worker {
namespace {

constexpr size_t kMessagesPerIteration = 64;

// Returns the session that the message concerns; 0: none.
SessionId SessionIn(const ControlMessage& message) {
  return std::visit(
      [](const auto& body) -> SessionId {
        if constexpr (requires { body.session; }) return body.session;
        if constexpr (requires { body.config.session; }) return body.config.session;
        return {};
      },
      message.body);
}

// Calls the handler that has a function for the message.
template <typename Body, typename First, typename... Rest>
ControlReply DoByOne(const Body& body, First& first, Rest&... rest) {
  if constexpr (requires { first.Do(body); }) {
    return first.Do(body);
  } else {
    return DoByOne(body, rest...);
  }
}

}  // namespace

bool ControlHandler::Apply() {
  bool busy = uses_.control.SendWaiting();
  if (has_messages()) uses_.memory.Flush();
  ControlMessage message;
  uses_.scheduler.Mark();
  for (size_t i = 0; i < kMessagesPerIteration && uses_.link.to_worker.Pop(message); ++i) {
    uses_.counters.control_messages_messages.Add();
    const SessionId from = SessionIn(message);
    Dispatch(message);
    busy = true;
    const WorkerSession* const session = uses_.sessions.Find(from);
    if (session == nullptr) continue;
    uses_.scheduler.ChargeTo(*session->account);
    // The remaining messages, of any session, wait for the next iteration.
    if (has_messages() && uses_.scheduler.InDebt(*session->account)) {
      uses_.scheduler.Wait(*session->account);
      break;
    }
  }
  uses_.control.Wake();
  return busy;
}

void ControlHandler::Dispatch(const ControlMessage& message) {
  std::visit(
      [&](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, std::monostate>) {
          uses_.control.Reply(message.cookie, Failed(EINVAL));
        } else if constexpr (requires { uses_.region_control.Do(body, message.cookie); }) {
          uses_.region_control.Do(body, message.cookie);
        } else {
          uses_.control.Reply(message.cookie, DoByOne(body, uses_.session_control,
                                                      uses_.queue_pair_control, uses_.queue_control,
                                                      uses_.region_control, uses_.network_control));
        }
      },
      message.body);
}

}  // namespace rocegw::worker
