// SPDX-License-Identifier: Apache-2.0
// Round trip estimate of a flow (RFC 6298 smoothing) and what follows from it for probing.
#pragma once

#include "gateway/base/time.h"

namespace rocegw::flow {

class RttEstimator {
 public:
  void OnSample(Duration rtt);

  bool has_sample() const { return has_sample_; }
  Duration smoothed() const { return smoothed_; }
  Duration minimum() const { return minimum_; }
  // After this long without progress a lost tail is likely (cf. RFC 8985 7.2).
  Duration ProbeTimeout() const;

 private:
  bool has_sample_ = false;
  Duration smoothed_;
  Duration variation_;
  Duration minimum_;
};

}  // namespace rocegw::flow
