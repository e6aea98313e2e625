// SPDX-License-Identifier: Apache-2.0
// Two channel sets on a network that the test controls, and what tests of channels ask of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "tests/support/channel/channel_pair.h"

namespace rocegw::testing::channel_set {

using channel::Acks;
using channel::Channel;
using channel::ChannelState;
using metrics::DropReason;
using wire::ChannelReason;
using wire::ControlKind;
using wire::Operation;

using Numbers = std::vector<uint32_t>;

inline size_t CountOf(const std::deque<ChannelPacket>& packets, ControlKind kind) {
  return static_cast<size_t>(std::count_if(packets.begin(), packets.end(),
                                           [&](const ChannelPacket& p) { return p.Is(kind); }));
}

class ChannelSetTest : public ::testing::Test {
 protected:
  Channel* OpenAndSend(uint32_t message) {
    Channel* channel = pair.Open();
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
    pair.Settle();
    return channel;
  }
  // Opens a channel that is in use; its peer has not heard of it.
  static Channel* Begun(ChannelPair& between, ChannelEnd& from, const ChannelEnd& to) {
    Channel* channel = from.Reach(to, between.now);
    from.Hold(channel);
    return channel;
  }
  Channel* Begun() { return Begun(pair, pair.a(), pair.b()); }
  ChannelPair pair;
};

}  // namespace rocegw::testing::channel_set
