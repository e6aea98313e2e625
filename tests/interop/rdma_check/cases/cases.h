// SPDX-License-Identifier: Apache-2.0
// The cases of rdma_check. A case runs on both sides at the same time and throws Failure when
// something is not as it must be. `by_client` says who requests, where that is a choice; such a
// case is run once for each direction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/interop/rdma_check/session.h"

namespace rocegw::interop {

enum class Needs { kAnything, kCm, kSocket };

struct Case {
  std::string name;
  bool both_directions;
  Needs needs;
  std::function<void(Session&, bool by_client)> run;
};

std::vector<Case> TransferCases();
std::vector<Case> AtomicCases();
std::vector<Case> FaultCases();
std::vector<Case> DatagramCases();
std::vector<Case> ConnectCases();
std::vector<Case> QueueCases();
std::vector<Case> WindowCases();
std::vector<Case> MemoryCases();
// Not part of `*`.
std::vector<Case> LargeMemoryCases();
std::vector<Case> PlacementCases();
std::vector<Case> EceCases();
std::vector<Case> EndlessCases();

}  // namespace rocegw::interop
