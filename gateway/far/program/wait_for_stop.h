// SPDX-License-Identifier: Apache-2.0
// Waiting for the signal that ends a daemon.
#pragma once

namespace rocegw::far {

// Returns when SIGTERM or SIGINT arrives; SIGHUP is ignored. `signals`: from BlockSignals.
void WaitForStop(int signals);

}  // namespace rocegw::far
