// SPDX-License-Identifier: Apache-2.0
// Run of a program that offers memory of this host: metrics page, readiness, and the thread that
// ends it when it is asked to stop.
#pragma once

#include <functional>
#include <string>

#include "gateway/base/status.h"
#include "gateway/process/http/metrics_server.h"
#include "gateway/process/sd_notify.h"

namespace rocegw::far {

struct DonorService {
  const process::MetricsSource* metrics = nullptr;
  std::string metrics_address;       // "ADDRESS:PORT"; empty: no page
  std::function<Status()> announce;  // once there is the page; may be empty. EINVAL: bad arguments
  std::string summary;               // for log and service manager
  std::function<Status()> run;       // until `stop`
  std::function<void()> stop;        // any thread
  std::function<void()> withdraw;    // after `run`; may be empty
  std::string stopping;              // for the service manager
};

// Returns the exit status. `signals`: descriptor of the blocked signals.
int ServeDonor(const process::ServiceManager& manager, int signals, const DonorService& service);

}  // namespace rocegw::far
