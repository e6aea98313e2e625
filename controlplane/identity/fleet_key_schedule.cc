// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/fleet_key_schedule.h"

#include <algorithm>
#include <iterator>

#include "controlplane/identity/openssl.h"

namespace rocegw::identity {
namespace {

using std::chrono::seconds;

// All agents have a new key long before its use, which is half a period after they get it.
constexpr int kAsksPerPeriod = 10;
// An agent learns of a rotation when it asks.
constexpr seconds kLongestRefresh{60};
constexpr seconds kLongestStep{90};
constexpr seconds kShortestStep{2};

}  // namespace

seconds FleetKeySchedule::StepOf(seconds period) {
  // Longer than agents wait. Three steps take half a period at most: until all gateways have the
  // keys of the rotation's end, the keys with its numbers are accepted.
  return std::clamp(period / 6, kShortestStep, kLongestStep);
}

int64_t FleetKeySchedule::NeighbourAt(TimePoint time) const {
  const bool early = time.time_since_epoch() % period_ < period_ / 2;
  return NumberAt(time) + (early ? -1 : 1);
}

FleetKeySchedule::Keys FleetKeySchedule::At(TimePoint now,
                                            std::span<const TimePoint> starts) const {
  const auto next = std::ranges::upper_bound(starts, now);
  const auto begun = std::distance(starts.begin(), next);
  const Generation current = begun > 0 ? Generation(*std::prev(next)) : std::nullopt;
  const Generation before = begun > 1 ? Generation(*std::prev(next, 2)) : std::nullopt;
  const seconds step = StepOf(period_);

  Keys result;
  std::optional<TimePoint> change;
  if (current.has_value() && now < *current + 2 * step) {
    // The numbers of the rotation's start hold until its end, so that a period that ends meanwhile
    // makes no gateway use a key that others have not asked for yet.
    const int64_t number = NumberAt(*current);
    if (now < *current + step) {
      change = *current + step;
      result.keys = {KeyOf(before, number), KeyOf(before, NeighbourAt(*current)),
                     KeyOf(current, number)};
    } else {
      change = *current + 2 * step;
      result.keys = {KeyOf(current, number), KeyOf(before, number), KeyOf(current, number + 1)};
    }
  } else {
    result.keys = {KeyOf(current, NumberAt(now)), KeyOf(current, NeighbourAt(now))};
  }
  if (next != starts.end() && (!change.has_value() || *next < *change)) change = *next;
  result.refresh_after = std::clamp(period_ / kAsksPerPeriod, seconds(1), kLongestRefresh);
  if (change.has_value()) {
    result.refresh_after =
        std::clamp(std::chrono::ceil<seconds>(*change - now), seconds(1), result.refresh_after);
  }
  return result;
}

std::string FleetKeySchedule::KeyOf(Generation generation, int64_t number) const {
  std::string text = "key of period " + std::to_string(number);
  if (generation.has_value())
    text += " since " + std::to_string(generation->time_since_epoch().count());
  return HmacSha256(secret_, text).substr(0, kKeyLength);
}

}  // namespace rocegw::identity
