// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/fleet_key_schedule.h"

#include <algorithm>

#include "controlplane/identity/openssl.h"

namespace rocegw::identity {
namespace {

using std::chrono::seconds;

// So that all agents have a new key long before its use, which is half a period after they get it.
constexpr int kAsksPerPeriod = 8;
constexpr seconds kLongestRefresh{3600};

}  // namespace

FleetKeySchedule::Keys FleetKeySchedule::At(TimePoint now) const {
  const int64_t number = now.time_since_epoch() / period_;
  Keys result;
  // The one of the two other keys that is used within half a period, or was.
  const bool early = now.time_since_epoch() % period_ < period_ / 2;
  for (const int64_t one : {number, early ? number - 1 : number + 1})
    result.keys.push_back(KeyOf(one));
  result.refresh_after = std::clamp(period_ / kAsksPerPeriod, seconds(1), kLongestRefresh);
  return result;
}

std::string FleetKeySchedule::KeyOf(int64_t number) const {
  return HmacSha256(secret_, "key of period " + std::to_string(number)).substr(0, kKeyLength);
}

}  // namespace rocegw::identity
