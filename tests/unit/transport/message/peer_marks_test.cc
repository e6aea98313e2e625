// SPDX-License-Identifier: Apache-2.0
// The set of peers that an endpoint's requests wait for: as a std::set, in constant time.
#include "gateway/transport/endpoint/peer_marks.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <set>

#include "tests/support/qp/endpoint_host.h"
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

// Returns the CPU time of one Pump with so many requests to a peer that does not answer, and as
// many to another one, which wait for the first of them.
int64_t TimeOfPump(uint32_t each) {
  RingOptions ring;
  ring.sq_entries = 2 * each;
  ring.service_mode = verbs::ServiceMode::kByInitiator;
  EndpointHost end(ring);
  ScriptedCarrier by;
  end.AddPeer(6, by, wire::Gid::FromV4(0x0A000006));
  for (const uint32_t peer : {EndpointHost::kPeer, 6u}) {
    end.to = peer;
    for (uint32_t i = 0; i < each; ++i) end.Post(ROCEGW_WR_SEND, 0x4000, 8);
  }
  end.Out();
  int64_t best = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const auto now = [] {
      timespec at{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
      return int64_t{at.tv_sec} * 1000000000 + at.tv_nsec;
    };
    const int64_t start = now();
    end.Out();
    best = std::min(best, now() - start);
  }
  return best;
}

TEST(EndpointInitiatorOrder, DeepQueue_CostsEachRequestTheSame) {
  const int64_t few = TimeOfPump(128);
  const int64_t many = TimeOfPump(4096);
  EXPECT_LT(many, 32 * 8 * few);
}

}  // namespace
}  // namespace rocegw::testing::peer_marks
