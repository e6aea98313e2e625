// SPDX-License-Identifier: Apache-2.0
// Keys by which the gateways of the fleet know one another. A key is computed from a secret of the
// authority, the number of its period since 1970, and the start of its generation
// (identity/fleet_key_rotation.h), so that all controllers of a fleet give the same keys and store
// none. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controlplane/identity/certificate.h"

namespace rocegw::identity {

class FleetKeySchedule {
 public:
  static constexpr size_t kKeyLength = 16;

  struct Keys {
    // The first key makes tags; a gateway accepts all of them. Two gateways understand each other
    // while they asked less than StepOf(period) apart during a rotation, else less than half a
    // period apart. Without a rotation no gateway accepts any of these keys that asks two periods
    // later.
    std::vector<std::string> keys;
    std::chrono::seconds refresh_after{0};
  };

  // `secret`: CertificateAuthority::DerivedSecret.
  FleetKeySchedule(std::string secret, std::chrono::seconds period)
      : secret_(std::move(secret)), period_(period) {}

  // `starts`: of the generations of keys after the first one, ascending; those that have not begun
  // are ignored. From its start a generation is accepted, a step later it makes tags, and another
  // step later no other generation is accepted.
  Keys At(TimePoint now, std::span<const TimePoint> starts = {}) const;

  // Returns the length of both steps of a rotation: longer than agents wait between two questions.
  static std::chrono::seconds StepOf(std::chrono::seconds period);

 private:
  // Start of the generation; nullopt: the first one.
  using Generation = std::optional<TimePoint>;
  int64_t NumberAt(TimePoint time) const { return time.time_since_epoch() / period_; }
  // Returns the number of the previous period in the first half of a period, else of the next one.
  int64_t NeighbourAt(TimePoint time) const;
  std::string KeyOf(Generation generation, int64_t number) const;

  const std::string secret_;
  const std::chrono::seconds period_;
};

}  // namespace rocegw::identity
