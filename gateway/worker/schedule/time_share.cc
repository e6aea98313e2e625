// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/schedule/time_share.h"

#include <algorithm>
#include <limits>

namespace rocegw::worker {
namespace {

constexpr uint64_t kWhole = TimeShare::kWhole;
// Margin on top of a measured need, because the next need may be larger.
constexpr uint32_t kLeastNeed = kWhole / 64;
// Credit beyond this is not saved, so that no user returns from a pause with a claim to more.
constexpr int64_t kMostSaved = 16'000;
// Debt beyond this is forgiven.
constexpr int64_t kMostDebt = 400'000;
// Handing out less would only make more and shorter turns.
constexpr int64_t kLeastAhead = 8'000;

int64_t PartOf(const TimeShare& share, int64_t time) {
  return time * static_cast<int64_t>(share.part) / static_cast<int64_t>(kWhole);
}

// Adds time to the credit. Returns how much of it could be saved.
int64_t Give(TimeShare& share, int64_t time, int64_t most = kMostSaved) {
  const int64_t before = share.credit;
  most = std::max(most, before);
  share.credit = std::clamp(before + time, -kMostDebt, most);
  return share.credit - before;
}

void LearnNeeds(std::span<TimeShare* const> among) {
  uint64_t used = 0;
  for (const TimeShare* share : among) used += static_cast<uint64_t>(share->used);
  for (TimeShare* share : among) {
    share->need = TimeShare::kWhole;
    if (!share->waited && used != 0) {
      const uint64_t need = static_cast<uint64_t>(share->used) * kWhole / used * 3 / 2;
      share->need = static_cast<uint32_t>(std::min(need + kLeastNeed, kWhole));
    }
    share->used = 0;
    share->waited = share->waits && share->credit <= 0;
  }
}

// Called if no user has time left and one waits: advances all credits until one is positive,
// perhaps that of an idle user, for which the others then wait.
void GoAhead(std::span<TimeShare* const> among) {
  int64_t ahead = std::numeric_limits<int64_t>::max();
  for (const TimeShare* share : among) {
    if (share->credit > 0) return;
    ahead = std::min(ahead, (1 - share->credit) * static_cast<int64_t>(kWhole) / share->part + 1);
  }
  ahead = std::max(ahead, kLeastAhead);
  for (TimeShare* share : among) share->given += Give(*share, PartOf(*share, ahead) + 1);
}

}  // namespace

void Divide(std::span<TimeShare* const> among, bool learn) {
  if (learn) LearnNeeds(among);
  uint64_t weights = 0;
  for (const TimeShare* share : among) weights += share->weight;
  uint64_t spare = 0;
  uint64_t eager = 0;
  for (TimeShare* share : among) {
    const auto fair =
        static_cast<uint32_t>(std::max(kWhole * share->weight / weights, uint64_t{1}));
    share->part = std::min(fair, share->need);
    spare += fair - share->part;
    if (share->need > fair) eager += share->weight;
  }
  for (TimeShare* share : among) {
    const uint64_t fair = kWhole * share->weight / weights;
    if (eager != 0 && share->need > fair)
      share->part += static_cast<uint32_t>(spare * share->weight / eager);
    if (eager == 0) share->part = static_cast<uint32_t>(std::max(fair, uint64_t{1}));
  }
}

void HandOut(std::span<TimeShare* const> among, int64_t spent, int64_t idle) {
  uint64_t waiting = 0;
  for (TimeShare* share : among) {
    share->idle = 0;
    // Time beyond that is for work that had to wait.
    const int64_t part = PartOf(*share, spent);
    share->given = Give(*share, part, std::max(kMostSaved, share->waits ? 2 * part : part));
    if (share->waits) waiting += share->weight;
  }
  for (TimeShare* share : among) {
    if (idle <= 0 || !share->waits) continue;
    share->idle = idle * static_cast<int64_t>(share->weight) / static_cast<int64_t>(waiting);
    (void)Give(*share, share->idle);
  }
  if (waiting != 0) GoAhead(among);
}

}  // namespace rocegw::worker
