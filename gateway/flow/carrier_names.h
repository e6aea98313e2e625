// SPDX-License-Identifier: Apache-2.0
// Names of a worker's carriers in the state of queue pairs (gateway/hand_over). The worker restores
// its channels before the queue pairs that use them. Belongs to the caller of HandOver.
#pragma once

#include <cstdint>

#include "gateway/flow/carrier.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::flow {

class CarrierNames {
 public:
  // Returns the name of a carrier, not 0.
  virtual uint64_t NameOf(const Carrier& carrier) = 0;
  // Returns the carrier of that name; nullptr: there is none.
  virtual Carrier* Find(uint64_t name) = 0;

 protected:
  ~CarrierNames() = default;
};

// Writes or reads a reference to a carrier, which may be nullptr. The reader counts no use of it.
void HandOver(hand_over::StateStream& state, CarrierNames& names, Carrier*& carrier);
inline void HandOver(hand_over::StateStream& state, WaitEntry& entry) {
  auto& [waiting, credit] = entry;
  state(waiting, credit);
}

}  // namespace rocegw::flow
