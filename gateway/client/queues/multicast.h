// SPDX-License-Identifier: Apache-2.0
// Attachment of queue pairs to multicast groups. Control path; any thread; errno values.
#pragma once

#include <infiniband/verbs.h>

namespace rocegw::client {

int AttachMulticast(ibv_qp* qp, const ibv_gid& group);
int DetachMulticast(ibv_qp* qp, const ibv_gid& group);

}  // namespace rocegw::client
