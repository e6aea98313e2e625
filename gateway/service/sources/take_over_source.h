// SPDX-License-Identifier: Apache-2.0
// Interface of the service to take-overs of the running daemon. Implemented by the daemon on its
// control thread; called from gRPC threads. Outlives the service.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/session/state/state_rows.h"

namespace rocegw::service {

// End of a take-over that a caller ordered.
struct TakeOverOutcome {
  std::string refusal;  // label; empty: this process was replaced
  std::string text;     // a single line
  Duration blackout;
  session::Totals handed_over;
};

class TakeOverSource {
 public:
  virtual ~TakeOverSource() = default;

  // Starts the installed program, which takes over. Calls `done` exactly once, on any thread, when
  // the take-over has ended; ESTALE: the number of take-overs is not `take_overs`; ESHUTDOWN: the
  // daemon is stopping.
  virtual void TakeOver(uint64_t take_overs,
                        std::function<void(const StatusOr<TakeOverOutcome>&)> done) = 0;
};

}  // namespace rocegw::service
