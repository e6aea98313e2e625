// SPDX-License-Identifier: Apache-2.0
// Keys by which the gateways of the fleet know one another. A key is computed from a secret of the
// authority and the number of its period since 1970, so that all controllers of a fleet give the
// same keys and store none. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "controlplane/identity/certificate.h"

namespace rocegw::identity {

class FleetKeySchedule {
 public:
  static constexpr size_t kKeyLength = 16;

  struct Keys {
    // Keys of this period and, in its first half, of the previous one, in its second half of the
    // next one. A gateway makes tags with the first and accepts both. So two gateways understand
    // each other while they asked less than half a period apart, and no gateway accepts any of
    // these keys that asks two periods later.
    std::vector<std::string> keys;
    std::chrono::seconds refresh_after{0};
  };

  // `secret`: CertificateAuthority::DerivedSecret.
  FleetKeySchedule(std::string secret, std::chrono::seconds period)
      : secret_(std::move(secret)), period_(period) {}
  Keys At(TimePoint now) const;

 private:
  std::string KeyOf(int64_t number) const;

  const std::string secret_;
  const std::chrono::seconds period_;
};

}  // namespace rocegw::identity
