// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/donors/serve_donor.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "gateway/far/program/wait_for_stop.h"
#include "gateway/process/exit_code.h"
#include "gateway/process/readiness.h"

namespace rocegw::far {

int ServeDonor(const process::ServiceManager& manager, int signals, const DonorService& service) {
  process::Readiness readiness;
  process::MetricsServer server(*service.metrics, readiness);
  if (!service.metrics_address.empty()) {
    if (const Status status = server.Start(service.metrics_address); !status.ok()) {
      spdlog::error(status.text());
      return process::kEnvironment;
    }
  }
  if (service.announce) {
    if (const Status status = service.announce(); !status.ok()) {
      spdlog::error(status.text());
      return status.error() == EINVAL ? process::kUsage : process::kEnvironment;
    }
  }
  std::thread stopper([&service, signals] {
    WaitForStop(signals);
    service.stop();
  });
  readiness.SetReady();
  spdlog::info("{}", service.summary);
  manager.Ready(service.summary);
  const Status ended = service.run();
  if (!ended.ok()) {
    spdlog::error(ended.text());
    kill(getpid(), SIGTERM);
  }
  if (service.withdraw) service.withdraw();
  manager.Stopping(service.stopping);
  stopper.join();
  return ended.ok() ? process::kOk : process::kInternal;
}

}  // namespace rocegw::far
