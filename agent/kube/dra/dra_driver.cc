// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/dra/dra_driver.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace rocegw::agent {

DraDriver::DraDriver(ControlLoop& loop, SlotAllocator& slots, kubeapi::ApiServer& api,
                     const DraSettings& settings, const ContainerSettings& containers,
                     PublisherPace pace, Duration review)
    : slots_(slots),
      settings_(settings),
      sharing_(settings.shared ? DeviceSharing::kShared : DeviceSharing::kSlots),
      preparer_(loop, slots, api, {settings.node, settings.checkpoint, containers}, counters_),
      review_(loop, preparer_, api, review),
      publisher_(
          loop, api, settings.node, counters_, [this] { LoseSharing(); }, pace),
      server_(loop, preparer_, [this](const std::string& problem) { OnRegistered(problem); }) {
  if (Status loaded = preparer_.Load(); !loaded.ok()) spdlog::error("{}", loaded.text());
}

void DraDriver::Update() {
  updated_ = true;
  publisher_.Set(DevicesOf(slots_, sharing_));
  // Slots that are released are cleared at the gateway, so the review begins when they are known.
  review_.Start();
}

void DraDriver::Look() {
  // kubelet calls only for pools with devices, so the servers start when there are some.
  if (!updated_ || server_.IsThere()) return;
  const Status started = server_.Start(settings_.registry_dir + "/" + kDraDriver + "-reg.sock",
                                       settings_.plugins_dir + "/" + kDraDriver + "/dra.sock");
  const std::string problem = started.ok() ? "" : started.text();
  if (std::exchange(last_problem_, problem) != problem && !problem.empty())
    spdlog::warn("the driver for claims does not serve: {}", problem);
}

void DraDriver::LoseSharing() {
  if (sharing_ == DeviceSharing::kSlots) return;
  spdlog::warn(
      "this cluster cannot share a device between claims (DRAConsumableCapacity): each slot is a "
      "device of its own, and claims cannot ask for amounts of a pool");
  sharing_ = DeviceSharing::kSlots;
  Update();
}

void DraDriver::OnRegistered(const std::string& problem) {
  if (!problem.empty()) {
    spdlog::warn("kubelet does not take the driver for claims: {}", problem);
    return;
  }
  spdlog::info("kubelet has registered the driver {} for claims", kDraDriver);
  publisher_.Look();
}

}  // namespace rocegw::agent
