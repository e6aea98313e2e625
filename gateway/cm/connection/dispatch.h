// SPDX-License-Identifier: Apache-2.0
// From a received message to the connection it belongs to and the handler that its state has for
// it; and what strangers are told. Control thread, inside the engine.
#pragma once

#include "gateway/cm/core.h"

namespace rocegw::cm {

metrics::DropReason Dispatch(Core& core, const Inbound& in, Step& step);

}  // namespace rocegw::cm
