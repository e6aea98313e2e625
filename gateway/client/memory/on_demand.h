// SPDX-License-Identifier: Apache-2.0
// On-demand regions. The library never pins a program's memory, so these regions are like others,
// except that their mappings are not checked. Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace rocegw::client {

// Fills in the capabilities of a device with such regions.
void FillOnDemandCaps(ibv_device_attr_ex* attr);

// Implements ibv_advise_mr: 0 or an errno value. With IBV_ADVISE_MR_FLAG_FLUSH the pages are in
// memory when it returns; without, they are read at their first use.
int AdviseMr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* list,
             uint32_t count);

}  // namespace rocegw::client
