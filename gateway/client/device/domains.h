// SPDX-License-Identifier: Apache-2.0
// Thread domains, in which a program uses its objects from one thread only, and parent domains,
// which add one to a protection domain. The library locks its queues in any case: an uncontended
// lock costs a few nanoseconds. Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace rocegw::client {

// Return nullptr and errno, or 0 or errno.
ibv_td* AllocThreadDomain(ibv_context* context, ibv_td_init_attr* attr);
int DeallocThreadDomain(ibv_td* td);
ibv_pd* AllocParentDomain(ibv_context* context, ibv_parent_domain_init_attr* attr);
// Frees a domain of AllocParentDomain.
void DeallocParentDomain(ibv_pd* parent);

}  // namespace rocegw::client
