// SPDX-License-Identifier: Apache-2.0
// Which handler takes which message in which state of a connection: the CM protocol as one table,
// in the place of nested switches. An empty cell means that the message does not belong there (drop
// reason cm_state).
#pragma once

#include <cstddef>

#include "gateway/cm/core.h"

namespace rocegw::cm {

using Handler = metrics::DropReason (*)(Core&, Connection&, const Inbound&, Step&);

// nullptr: none. `message` is the index in wire::CmBody.
Handler HandlerFor(ConnectionState state, size_t message);

}  // namespace rocegw::cm
