// SPDX-License-Identifier: Apache-2.0
// Counters of a worker for a gateway that takes over (gateway/hand_over/state_stream.h).
#pragma once

#include "gateway/metrics/worker_counters.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::worker {

// Writes the counters by name, or reads them and adds them to those of a fresh worker, so that no
// sum jumps back. Names that this program does not know are skipped.
void HandOver(hand_over::StateStream& state, metrics::WorkerCounters& counters);

}  // namespace rocegw::worker
