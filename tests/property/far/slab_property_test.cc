// SPDX-License-Identifier: Apache-2.0
// Replicas of a slab against a model in which each donor's copy is an array of versions by page.
// The copy to a new replica advances page by page between other steps, as it does in a session.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "gateway/far/placement/slab.h"
#include "tests/support/random.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPages = 16;
constexpr uint64_t kPage = Slab::kPageBytes;

TEST(SlabProperty, ReadsReturnTheLastWriteOrAnError) {
  testing::Random random(testing::TestSeed(35));
  for (int round = 0; round < 300; round++) {
    Slab slab(kPages * kPage);
    std::map<uint32_t, std::vector<int>> copies;  // by donor
    std::map<uint32_t, uint64_t> copied_to;       // restoring: byte up to which it is copied
    std::vector<int> last(kPages, 0);             // version of the last acknowledged write
    std::vector<bool> lost(kPages, false);
    uint32_t next_donor = 0;
    for (int step = 1; step < 300; step++) {
      const uint64_t page = random.Below(kPages);
      switch (random.Below(6)) {
        case 0:  // a new replica
          if (slab.replicas().size() < 3) {
            Replica replica;
            replica.donor = next_donor++;
            slab.Add(replica);
            copies[replica.donor] = std::vector<int>(kPages, 0);
            copied_to[replica.donor] = 0;
          }
          break;
        case 1:  // a donor dies
          if (random.Below(4) == 0 && !slab.replicas().empty()) {
            ASSERT_TRUE(
                slab.DonorLost(slab.replicas()[random.Below(slab.replicas().size())].donor));
            if (slab.live() == 0) {
              for (uint64_t each = 0; each < kPages; each++) {
                lost[each] = lost[each] || last[each] != 0;
                last[each] = 0;
              }
            }
          }
          break;
        case 2:
        case 3: {  // a write of whole pages
          const uint64_t end = page + random.Between(1, kPages - page);
          if (slab.live() == 0) break;
          slab.WriteSent(page * kPage, end * kPage);
          for (uint64_t each = page; each < end; each++) {
            for (const Replica& replica : slab.replicas()) copies[replica.donor][each] = step;
            last[each] = step;
            lost[each] = false;
          }
          slab.WriteDone(page * kPage, end * kPage);
          break;
        }
        case 4:  // a piece of a copy
          for (const Replica& replica : slab.replicas()) {
            if (replica.state != ReplicaState::kRestoring) continue;
            const auto stretch = slab.NextWritten(copied_to[replica.donor], 2 * kPage);
            if (!stretch) {
              slab.Restored(replica.donor);
              break;
            }
            const Replica* from = slab.ForRead(random.Bits());
            ASSERT_NE(from, nullptr);
            for (uint64_t each = stretch->begin / kPage; each < stretch->end / kPage; each++) {
              copies[replica.donor][each] = copies[from->donor][each];
            }
            copied_to[replica.donor] = stretch->end;
            break;
          }
          break;
        default:  // a read
          ASSERT_EQ(slab.IsLost(page * kPage, page * kPage + 1), lost[page]);
          if (const Replica* from = slab.ForRead(random.Bits()); from != nullptr && !lost[page]) {
            ASSERT_EQ(copies[from->donor][page], last[page]);
          }
      }
    }
  }
}

}  // namespace
}  // namespace rocegw::far
