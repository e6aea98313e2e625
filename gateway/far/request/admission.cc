// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/request/admission.h"

#include <algorithm>

namespace rocegw::far {

bool Admission::HasRoom(uint64_t bytes) {
  const bool limited = hook_ != nullptr || window_ != 0;
  const uint64_t window = hook_ != nullptr ? hook_(argument_, in_flight_) : window_;
  if (limited && in_flight_ != 0 && (in_flight_ > window || bytes > window - in_flight_)) {
    refusals_++;
    return false;
  }
  return true;
}

bool Admission::Admit(uint64_t bytes) {
  if (!HasRoom(bytes)) return false;
  in_flight_ += bytes;
  peak_ = std::max(peak_, in_flight_);
  return true;
}

}  // namespace rocegw::far
