// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/donate.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "gateway/far/donor/donor.h"
#include "gateway/far/donor/donor_metrics.h"
#include "gateway/far/program/wait_for_stop.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/http/metric_families.h"
#include "gateway/process/readiness.h"
#include "gateway/process/sd_notify.h"
#include "gateway/process/startup.h"

namespace rocegw::far {

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
  process::Readiness readiness;
  process::MetricsServer server(metrics, readiness);
  if (!arguments.metrics.empty()) {
    if (const Status status = server.Start(arguments.metrics); !status.ok()) {
      spdlog::error(status.text());
      return process::kEnvironment;
    }
  }
  std::thread stopper([&donor, fd = signals->get()] {
    WaitForStop(fd);
    donor.Stop();
  });
  readiness.SetReady();
  const std::string summary = "donates " + std::to_string(arguments.limits.donated_bytes) +
                              " bytes at port " + arguments.port;
  spdlog::info("{}", summary);
  manager.Ready(summary);
  const Status ended = donor.Run();
  if (!ended.ok()) {
    spdlog::error(ended.text());
    kill(getpid(), SIGTERM);
  }
  manager.Stopping("ending leases");
  stopper.join();
  return ended.ok() ? process::kOk : process::kInternal;
}

}  // namespace rocegw::far
