// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/donors/donate.h"

#include <spdlog/spdlog.h>

#include <string>

#include "gateway/far/donor/donor.h"
#include "gateway/far/donor/donor_metrics.h"
#include "gateway/far/fleet/announcer.h"
#include "gateway/far/program/donors/serve_donor.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/http/metric_families.h"
#include "gateway/process/sd_notify.h"
#include "gateway/process/startup.h"

namespace rocegw::far {

namespace {

Announcer::Calls CallsOf(Donor& donor, const DonateArguments& arguments) {
  Announcer::Calls calls;
  calls.state = [&donor, &arguments, address = donor.address(), port = donor.port()] {
    const DonorCounts counts = donor.counts();
    Announcement announcement;
    // Numbers, also when the arguments are names of a host and a service.
    announcement.address = address;
    announcement.port = port;
    announcement.donated_bytes = counts.donated_bytes;
    announcement.leased_bytes = counts.leased_bytes;
    announcement.leases = counts.leases;
    announcement.sessions = counts.sessions;
    announcement.tenants = counts.leased_by_tenant;
    announcement.draining = counts.draining;
    announcement.version = arguments.version;
    return announcement;
  };
  calls.follow = [&donor](const DonorOrders& orders) {
    donor.Follow({.draining = orders.draining,
                  .tenants = orders.quotas,
                  .tenant_bytes = orders.tenant_bytes});
  };
  return calls;
}

}  // namespace

int Donate(const DonateArguments& arguments) {
  process::RaiseDescriptorLimit();
  const process::ServiceManager manager = process::ServiceManager::FromEnvironment();
  auto signals = process::BlockSignals();
  if (!signals.ok()) {
    spdlog::error(signals.status().text());
    return process::kEnvironment;
  }
  Donor donor(arguments.limits);
  if (const Status status = donor.Listen(arguments.address, arguments.port); !status.ok()) {
    spdlog::error(status.text());
    return process::kEnvironment;
  }
  const DonorMetrics metrics(donor, process::NowNanoseconds());
  Announcer announcer;
  DonorService service{.metrics = &metrics, .metrics_address = arguments.metrics};
  if (!arguments.announce.empty()) {
    service.announce = [&] {
      return announcer.Start(arguments.announce, arguments.name, CallsOf(donor, arguments));
    };
  }
  service.summary = "donates " + std::to_string(arguments.limits.donated_bytes) +
                    " bytes at port " + arguments.port;
  service.run = [&donor] { return donor.Run(); };
  service.stop = [&donor] { donor.Stop(); };
  service.withdraw = [&announcer] { announcer.Stop(); };
  service.stopping = "ending leases";
  return ServeDonor(manager, signals->get(), service);
}

}  // namespace rocegw::far
