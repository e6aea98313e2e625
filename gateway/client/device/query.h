// SPDX-License-Identifier: Apache-2.0
// Queries of a device and its port. Structures that have grown come with the size that the caller
// knows: no byte beyond it is written. Errors are errno values. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/client/device/objects.h"

namespace rocegw::client {

int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attr, size_t size);
int QueryDeviceExtended(ibv_context* context, const ibv_query_device_ex_input* input,
                        ibv_device_attr_ex* attr, size_t size);
int QueryClock(ibv_context* context, ibv_values_ex* values);

// Returns the GID at an index; ENODATA for an unused one, EINVAL beyond the table.
int FindGid(Context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry);

}  // namespace rocegw::client
