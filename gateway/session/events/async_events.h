// SPDX-License-Identifier: Apache-2.0
// Asynchronous events of one session (ibv_get_async_event(3)): each context has a channel, and
// events of an object go to the context that it belongs to. Owner: the session, control thread.
#pragma once

#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/session/events/event_channel.h"
#include "gateway/worker/control/control_message.h"

namespace rocegw::session {

struct Objects;

class AsyncEvents {
 public:
  // `objects` outlives this.
  explicit AsyncEvents(Objects& objects) : objects_(objects) {}

  // Returns what tells objects of a channel apart. `kind`: rocegw_object_kind.
  static EventChannel::Subject SubjectOf(uint32_t kind, uint32_t handle) {
    return static_cast<uint64_t>(kind) << 32 | handle;
  }

  // Returns the context's channel; nullptr: there is no such context.
  EventChannel* Of(uint32_t context);
  // Sends an event that a worker raised to the context of its object, or to all contexts if it
  // belongs to none. An object that is gone has none.
  void Raise(const worker::AsyncEventRaised& event);
  // Reports an event of a device's only port to all contexts of the device. `type`: enum
  // ibv_event_type.
  void RaiseOfPort(uint32_t device, uint32_t type);
  // Withdraws waiting events of a destroyed object. Returns how many the client got or may still
  // get.
  uint32_t Forget(uint32_t context, rocegw_object_kind kind, uint32_t handle);

 private:
  Objects& objects_;
};

}  // namespace rocegw::session
