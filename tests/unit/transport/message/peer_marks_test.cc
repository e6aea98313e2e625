// SPDX-License-Identifier: Apache-2.0
// The set of peers that an endpoint's requests wait for: as a std::set, in constant time.
#include "gateway/transport/endpoint/peer_marks.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/random.h"

namespace rocegw::testing::peer_marks {
namespace {

TEST(PeerMarks, RandomPeers_AgreesWithAModel) {
  Random random(11);
  transport::PeerMarks marks;
  for (int round = 0; round < 200; ++round) {
    std::set<uint32_t> model;
    marks.Clear();
    const auto peers = static_cast<uint32_t>(1 + random.Below(round % 10 == 0 ? 3000 : 20));
    for (uint32_t i = 0; i < 2 * peers; ++i) {
      const auto peer = static_cast<uint32_t>(random.Below(peers));
      ASSERT_EQ(marks.Contains(peer), model.contains(peer));
      if (random.Below(2) == 0) continue;
      marks.Add(peer);
      model.insert(peer);
    }
  }
}

}  // namespace
}  // namespace rocegw::testing::peer_marks
