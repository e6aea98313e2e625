// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/fleet_key_rotation.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "controlplane/model/stored.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::identity {
namespace {

using google::protobuf::util::TimeUtil;
using std::chrono::seconds;

// The generation in use, the one before it, and two that have not begun.
constexpr size_t kKeptStarts = 4;
// A transaction that relies on a generation that has not begun is in the store until then.
constexpr seconds kLongestWrite{10};

}  // namespace

std::vector<TimePoint> StartsOfKeys(const Found& record) {
  controlplane::v1::FleetKeyRecord read;
  std::vector<TimePoint> starts;
  if (!record.has_value() || !read.ParseFromString(record->value)) return starts;
  for (const auto& start : read.starts())
    starts.emplace_back(std::chrono::microseconds(TimeUtil::TimestampToMicroseconds(start)));
  std::ranges::sort(starts);
  return starts;
}

KeyRotation PlanKeyRotation(const Found& record, seconds period, TimePoint now) {
  const seconds step = FleetKeySchedule::StepOf(period);
  const seconds length = 2 * step;
  std::vector<TimePoint> starts = StartsOfKeys(record);
  // A clock that was far ahead must not prevent rotations until that time has come.
  std::erase_if(starts,
                [&](TimePoint start) { return start > now + 2 * length + kClockTolerance; });
  // So at most two generations have not begun.
  if (!starts.empty() && starts.back() > now + std::min(kLongestWrite, step))
    return {.step = {}, .start = starts.back(), .done = starts.back() + length};
  const TimePoint start = starts.empty() ? now : std::max(now, starts.back() + length);
  starts.push_back(start);
  controlplane::v1::FleetKeyRecord written;
  for (size_t i = starts.size() - std::min(starts.size(), kKeptStarts); i < starts.size(); ++i)
    *written.add_starts() = TimeUtil::MicrosecondsToTimestamp(starts[i].time_since_epoch().count());
  const std::string key(model::kFleetKeysKey);
  const store::Revision revision = record.has_value() ? record->mod_revision : 0;
  return {.step = {.compares = {store::Compare::ModifiedAt(key, revision)},
                   .operations = {store::Operation::Put(key, written.SerializeAsString())}},
          .start = start,
          .done = start + length};
}

}  // namespace rocegw::identity
