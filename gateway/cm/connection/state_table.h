// SPDX-License-Identifier: Apache-2.0
// Table of the CM protocol: the handler for each message in each state of a connection, instead of
// nested switches. An empty cell means that the message is not valid there (drop reason cm_state).
#pragma once

#include <cstddef>

#include "gateway/cm/core.h"

namespace rocegw::cm {

using Handler = metrics::DropReason (*)(Core&, Connection&, const Inbound&, Step&);

// Returns nullptr if there is no handler. `message` is the index in wire::CmBody.
Handler HandlerFor(ConnectionState state, size_t message);

}  // namespace rocegw::cm
