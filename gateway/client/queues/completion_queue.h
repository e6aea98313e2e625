// SPDX-License-Identifier: Apache-2.0
// Completion queues as their two ways of polling share them: ibv_poll_cq, and the calls of
// ibv_cq_ex, which hand out one completion after the other. Any thread; between ibv_start_poll and
// ibv_end_poll a queue belongs to the thread that began.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/client/device/objects.h"

namespace rocegw::client {

// nullptr and errno.
ibv_cq* CreateCq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                 int vector);
// As ibv_modify_cq.
int ModifyCq(ibv_cq* cq, ibv_modify_cq_attr* attr);
// As ibv_poll_cq; with one place also when the completion was made, CLOCK_MONOTONIC in ns.
int PollCompletions(Cq* cq, int count, ibv_wc* wc, uint64_t* made_ns);

// What ibv_cq_ex can tell (enum ibv_create_cq_wc_flags).
constexpr uint64_t kKnownWcFlags = uint64_t{IBV_WC_STANDARD_FLAGS} |
                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
// The queue has the calls of ibv_cq_ex from now on.
void AddPollCalls(Cq* cq);

}  // namespace rocegw::client
