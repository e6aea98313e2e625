// SPDX-License-Identifier: Apache-2.0
// Replicas of a slab against a model in which each donor's copy is an array of versions by page.
// The copy to a new replica advances between other steps, as it does in a session: pages are read
// in one step and written in a later one, and its donor may be lost, come back and get the slab
// again in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gateway/far/placement/slab.h"
#include "tests/support/random.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPages = 16;
constexpr uint64_t kPage = Slab::kPageBytes;

// The one copy that is in progress.
struct CopyInProgress {
  uint64_t replica = 0;
  uint64_t position = 0;
  std::optional<Slab::Stretch> stretch;  // was read; writes of these pages wait
  std::vector<int> read;
};

// Starts the next piece of the copy, or ends it.
void ReadPiece(Slab& slab, const std::map<uint32_t, std::vector<int>>& copies, uint64_t turn,
               std::optional<CopyInProgress>& copy) {
  if (!copy) {
    for (const Replica& replica : slab.replicas()) {
      if (replica.state == ReplicaState::kRestoring) copy = {replica.serial, 0, {}, {}};
    }
    if (!copy) return;
  }
  if (slab.FindRestoring(copy->replica) == nullptr) {
    copy.reset();
    return;
  }
  copy->stretch = slab.NextWritten(copy->position, 2 * kPage);
  if (!copy->stretch) {
    slab.Restored(copy->replica);
    copy.reset();
    return;
  }
  const std::vector<int>& from = copies.at(slab.ForRead(turn)->donor);
  copy->read.assign(from.begin() + static_cast<int>(copy->stretch->begin / kPage),
                    from.begin() + static_cast<int>(copy->stretch->end / kPage));
}

void WritePiece(const Slab& slab, std::map<uint32_t, std::vector<int>>& copies,
                std::optional<CopyInProgress>& copy) {
  const Replica* replica = slab.FindRestoring(copy->replica);
  if (replica == nullptr) {
    copy.reset();
    return;
  }
  std::copy(copy->read.begin(), copy->read.end(),
            copies[replica->donor].begin() + static_cast<int>(copy->stretch->begin / kPage));
  copy->position = copy->stretch->end;
  copy->stretch.reset();
}

TEST(SlabProperty, ReadsReturnTheLastWriteOrAnError) {
  testing::Random random(testing::TestSeed(35));
  for (int round = 0; round < 300; round++) {
    Slab slab(kPages * kPage);
    std::map<uint32_t, std::vector<int>> copies;  // by donor
    std::optional<CopyInProgress> copy;
    std::vector<int> last(kPages, 0);  // version of the last acknowledged write
    std::vector<bool> lost(kPages, false);
    for (int step = 1; step < 300; step++) {
      const uint64_t page = random.Below(kPages);
      switch (random.Below(6)) {
        case 0:  // a new replica
          if (slab.replicas().size() < 3) {
            Replica replica;
            replica.donor = static_cast<uint32_t>(random.Below(4));
            if (slab.Has(replica.donor)) break;
            slab.Add(replica);
            copies[replica.donor] = std::vector<int>(kPages, 0);
          }
          break;
        case 1:  // a donor dies
          if (random.Below(4) == 0 && !slab.replicas().empty()) {
            const uint32_t generation = slab.generation();
            ASSERT_TRUE(
                slab.DonorLost(slab.replicas()[random.Below(slab.replicas().size())].donor));
            ASSERT_EQ(slab.live() != 0, !slab.replicas().empty());
            if (slab.generation() != generation) {
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
          if (copy && copy->stretch && copy->stretch->begin < end * kPage &&
              page * kPage < copy->stretch->end) {
            break;
          }
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
          if (copy && copy->stretch) {
            WritePiece(slab, copies, copy);
          } else {
            ReadPiece(slab, copies, random.Bits(), copy);
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
