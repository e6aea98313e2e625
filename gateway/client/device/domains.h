// SPDX-License-Identifier: Apache-2.0
// Thread domains, by which a program says that one thread alone uses what it makes in them, and
// parent domains, which add one to a protection domain. The library's queues are locked all the
// same: an uncontended lock costs a few nanoseconds. Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace rocegw::client {

// nullptr and errno; 0 or errno.
ibv_td* AllocThreadDomain(ibv_context* context, ibv_td_init_attr* attr);
int DeallocThreadDomain(ibv_td* td);
ibv_pd* AllocParentDomain(ibv_context* context, ibv_parent_domain_init_attr* attr);
// Of a domain that AllocParentDomain has made.
void DeallocParentDomain(ibv_pd* parent);

}  // namespace rocegw::client
