// SPDX-License-Identifier: Apache-2.0
// Dispatch of a received message to its connection and the handler for its state, and answers to
// messages of strangers. Control thread, inside the engine.
#pragma once

#include "gateway/cm/core.h"

namespace rocegw::cm {

metrics::DropReason Dispatch(Core& core, const Inbound& in, Step& step);

}  // namespace rocegw::cm
