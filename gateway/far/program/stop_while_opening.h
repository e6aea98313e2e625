// SPDX-License-Identifier: Apache-2.0
// Lets a signal to stop end the opening of a session, which may wait for donors for long. Watches
// the signals while the object lives; afterwards they are for WaitForStop again.
#pragma once

#include <atomic>
#include <thread>

#include "gateway/base/unique_fd.h"

namespace rocegw::far {

class StopWhileOpening {
 public:
  // `signals`: descriptor of process::BlockSignals.
  explicit StopWhileOpening(int signals);
  ~StopWhileOpening();
  StopWhileOpening(const StopWhileOpening&) = delete;
  StopWhileOpening& operator=(const StopWhileOpening&) = delete;

  // Readable from the signal on (Settings::cancel_fd).
  int fd() const { return stop_fd_.get(); }
  bool stopped() const { return stopped_; }

 private:
  void Watch(int signals);

  const UniqueFd stop_fd_;
  const UniqueFd end_fd_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace rocegw::far
