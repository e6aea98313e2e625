// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/diagnoses.h"

#include <utility>

#include "gateway/doctor/examine.h"
#include "gateway/doctor/read_host.h"

namespace rocegw::daemon {

Diagnoses::~Diagnoses() {
  if (thread_.joinable()) thread_.join();
}

void Diagnoses::Ask(doctor::GatewayFacts gateway, Done done) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(done));
  if (waiting_.size() > 1) return;
  // The thread has finished its work and is about to end.
  if (thread_.joinable()) thread_.join();
  thread_ =
      std::thread([this, gateway = std::move(gateway)]() mutable { Run(std::move(gateway)); });
}

void Diagnoses::Run(doctor::GatewayFacts gateway) {
  doctor::Facts facts{std::move(gateway), {}};
  facts.host = doctor::ReadHost(facts.gateway);
  const gateway::v1::DiagnoseResponse found = doctor::Examine(facts);
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const Done& done : waiting) done(found);
}

}  // namespace rocegw::daemon
