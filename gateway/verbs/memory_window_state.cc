// SPDX-License-Identifier: Apache-2.0
// State of memory windows for a gateway that takes over (gateway/hand_over/state_stream.h).
#include "gateway/hand_over/state_stream.h"
#include "gateway/verbs/memory_window.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::verbs {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

MemoryKey MemoryWindow::HandOverKeys(StateStream& state) {
  const StateRecord record(state, StateKind::kMemoryWindow);
  auto& [type, session, pd, taken, own_key, region, bound, access, address, length, qpn, qp] =
      *this;
  (void)type, (void)session, (void)pd;  // configuration
  (void)taken;                          // no worker uses the window
  const uint32_t name = NameOf(own_key);
  const bool is_bound = state.Carry(bound != nullptr);
  state(own_key, region, access, address, length, qpn, qp);
  state.Require(NameOf(own_key) == name, "state of another memory window");
  state.Require(!is_bound || region.value != 0, "memory window is bound to no region");
  return state.reading() && state.ok() && is_bound ? region : MemoryKey{};
}

// Counts the binding at its region, whose rights and bounds the reader checks again.
void MemoryWindow::BindAgain(StateStream& state, const RegionConfig* region) {
  const bool allowed = region != nullptr && region->session == session_ && region->pd == pd_ &&
                       region->windows != nullptr && region->Holds(address_, length_);
  if (!state.Require(allowed, "memory window's region is missing")) return;
  if (state.Require(region->windows->Enter(), "memory window's region is being removed"))
    bound_ = region->windows;
}

}  // namespace rocegw::verbs
