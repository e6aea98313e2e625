// SPDX-License-Identifier: Apache-2.0
// Drain of the gateway on this host, ordered at the gateway itself: it lasts while its process
// runs, independent of the controller.
#pragma once

#include <functional>

#include "controlplane/cli/program.h"

namespace rocegw::cli {

struct LocalDrain {
  bool drain = true;  // false: back into service
  bool wait = false;  // until no program is left, at most program.patience()
  // Asked before each look of a wait; false: the order is taken back. Unset: true.
  std::function<bool()> goes_on;
};

// Returns the exit status.
int OrderLocalDrain(Program& program, const LocalDrain& order);

}  // namespace rocegw::cli
