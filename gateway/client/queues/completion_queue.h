// SPDX-License-Identifier: Apache-2.0
// Completion queues: common part of the two ways of polling, ibv_poll_cq and the calls of
// ibv_cq_ex, which return completions one by one. Any thread; between ibv_start_poll and
// ibv_end_poll a queue belongs to the polling thread.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/client/device/objects.h"

namespace rocegw::client {

// Returns nullptr and errno on an error.
ibv_cq* CreateCq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                 int vector);
// Implements ibv_modify_cq.
int ModifyCq(ibv_cq* cq, ibv_modify_cq_attr* attr);
// Implements ibv_poll_cq. For one completion it also returns its creation time, CLOCK_MONOTONIC in
// ns.
int PollCompletions(Cq* cq, int count, ibv_wc* wc, uint64_t* made_ns);

// Fields that ibv_cq_ex supports (enum ibv_create_cq_wc_flags).
constexpr uint64_t kKnownWcFlags = uint64_t{IBV_WC_STANDARD_FLAGS} |
                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
// Adds the calls of ibv_cq_ex to the queue.
void AddPollCalls(Cq* cq);

}  // namespace rocegw::client
