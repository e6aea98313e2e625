// SPDX-License-Identifier: Apache-2.0
// State of sealed channels for a gateway that takes over (gateway/hand_over/state_stream.h). No key
// is written: the reader has the keys of the fleet and derives the others.
#include "gateway/channel/protection/channel_protection.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::channel {

using hand_over::StateStream;

void SequenceWindow::HandOver(StateStream& state) {
  auto& [highest, taken] = *this;
  state(highest);
  for (uint64_t& word : taken) state(word);
}

void ChannelProtection::HandOver(StateStream& state) {
  auto& [ends, peer_number, peer_epoch, peer_offer, has_agreed, encrypted, sequence, taken, out, in,
         last_id] = *this;
  (void)ends;           // given to the constructor
  (void)out, (void)in;  // derived when they are used
  state(peer_number, peer_epoch);
  state.Bytes(peer_offer.salt);
  state(peer_offer.encrypts, has_agreed, encrypted, sequence, last_id);
  taken.HandOver(state);
  state.Require(has_agreed || (sequence == 0 && taken.highest() == 0),
                "a channel without peer has sealed");
  state.Require(sequence <= UINT64_MAX / 2, "sequence of a channel is out of range");
  if (state.reading() && has_agreed) sequence += kTakeOverGap;
}

}  // namespace rocegw::channel
