// SPDX-License-Identifier: Apache-2.0
// State of completion queues for a gateway that takes over (gateway/hand_over/state_stream.h).
#include "gateway/hand_over/state_stream.h"
#include "gateway/verbs/completion_queue.h"

namespace rocegw::verbs {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

void CqModeration::HandOver(StateStream& state) {
  auto& [completions, is_solicited] = *this;
  completions = state.Carry(completions.load());
  is_solicited = state.Carry(is_solicited.load());
}

void CompletionQueue::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kCompletionQueue);
  auto& [list, session, is_listed, waits_for_space, is_overrun, overrun_reported, is_solicited,
         channel, fresh, ring, config, moderation, count, period, deferred_to, looked_at, sent] =
      *this;
  // Links and configuration; the worker lists the queue again.
  (void)list, (void)session, (void)looked_at, (void)config, (void)moderation, (void)count;
  (void)period, (void)channel;
  state.Require(!is_listed, "completions have not been reported");
  state(deferred_to, waits_for_space, sent);
  ring.HandOver(state);
  state(fresh, is_overrun, overrun_reported, is_solicited);
}

}  // namespace rocegw::verbs
