// SPDX-License-Identifier: Apache-2.0
// State of a worker's sessions and accounts for a gateway that takes over
// (gateway/hand_over/state_stream.h). The reader's control thread has linked the same objects.
#pragma once

#include "gateway/worker/objects/completion_events.h"
#include "gateway/worker/objects/worker_session.h"

namespace rocegw::worker {

void HandOver(hand_over::StateStream& state, Account& account);
// Writes or reads the session with its completion queues and shared receive queues. Events that a
// queue deferred wait in `events` again.
void HandOver(hand_over::StateStream& state, WorkerSession& session, CompletionEvents& events);

}  // namespace rocegw::worker
