// SPDX-License-Identifier: Apache-2.0
// On-demand regions: nothing of the program's memory is ever pinned here, so that they are regions
// like others, of which the library does not ask what is mapped there. Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace rocegw::client {

// What a device with such regions says about itself.
void FillOnDemandCaps(ibv_device_attr_ex* attr);

// As ibv_advise_mr: 0 or an errno value. Pages that are asked for by IBV_ADVISE_MR_FLAG_FLUSH are
// in memory when it returns; without it, it is left to their first use.
int AdviseMr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* list,
             uint32_t count);

}  // namespace rocegw::client
