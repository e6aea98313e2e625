// SPDX-License-Identifier: Apache-2.0
// Channels between two gateways that share keys, for tests of authentication and of sealing.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "gateway/wire/authentication.h"
#include "tests/support/channel/channel_pair.h"

namespace rocegw::testing::keyed {

inline constexpr SecretKey kFirst = {1, 2};
inline constexpr SecretKey kSecond = {3, 4};
inline constexpr SecretKey kThird = {5, 6};

// Returns the settings with these keys, the one for sending first.
inline FleetKeys WithKeys(FleetKeys settings, std::initializer_list<SecretKey> keys) {
  for (const SecretKey& key : keys) settings.keys[settings.count++] = key;
  return settings;
}

class KeyedChannelsTest : public ::testing::Test {
 protected:
  // Opens a channel from a to b, whose discovery answer offered these features.
  channel::Channel* ReachWith(uint32_t features, uint8_t traffic_class) {
    verbs::ChannelTarget target = ChannelEnd::TargetOf(pair.b());
    target.features = features;
    return pair.a().set.Reach(target, pair.a().PathTo(pair.b(), traffic_class), 77, 0, pair.now);
  }
  // Keeps a's channel in use until both ends have opened it; nullptr stays nullptr.
  channel::Channel* Settled(channel::Channel* channel) {
    if (channel == nullptr) return nullptr;
    pair.a().Hold(channel);
    pair.Settle();
    return channel;
  }
  channel::Channel* OtherEnd() { return pair.b().Known(pair.a()); }

  ChannelPair pair;
};

}  // namespace rocegw::testing::keyed
