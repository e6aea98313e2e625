// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/client_memory.h"

#include <unistd.h>

#include <utility>

#include "gateway/memory/cross_process.h"
#include "gateway/memory/own_memory.h"
#include "gateway/session/objects/session_costs.h"
#include "gateway/session/services.h"

namespace rocegw::session {

ClientMemory::ClientMemory(Services& services, const tenant::Pool& pool, const Peer& peer)
    : services_(services), peer_(peer), trusted_(pool.settings().trusted) {}

memory::AtomicLocks& ClientMemory::locks() {
  return trusted_ ? services_.trusted_locks : parts_->locks;
}

void ClientMemory::SetUp(UniqueFd memory) {
  if (services_.options.memory_way == MemoryWay::kOwn) {
    reachable_ = true;
    memory_ = std::make_shared<memory::OwnMemory>(locks());
    space_ = std::make_shared<device_memory::DeviceSpace>(memory_);
    way_ = ROCEGW_MEMORY_IN_PROCESS;
    return;
  }
  Use(MayCross() && memory::CrossProcessMemory::Permitted(peer_.pid), std::move(memory));
}

bool ClientMemory::MayCross() const {
  return services_.options.memory_way == MemoryWay::kAuto && peer_.pid != 0 &&
         peer_.uid == ::geteuid();
}

void ClientMemory::Use(bool cross, UniqueFd memory) {
  reachable_ = cross || memory.valid();
  if (cross) {
    memory_ = std::make_shared<memory::CrossProcessMemory>(peer_.pid, locks());
    way_ = ROCEGW_MEMORY_CROSS;
  } else {
    auto by_descriptor = std::make_shared<memory::DescriptorMemory>(std::move(memory), locks());
    by_descriptor_ = by_descriptor.get();
    memory_ = std::move(by_descriptor);
    way_ = ROCEGW_MEMORY_DESCRIPTOR;
  }
  space_ = std::make_shared<device_memory::DeviceSpace>(memory_);
}

Status ClientMemory::Replace(UniqueFd memory) {
  // Other access modes need no update.
  if (by_descriptor_ == nullptr) return OkStatus();
  return by_descriptor_->Replace(std::move(memory));
}

const std::shared_ptr<device_memory::OpenDevices>& ClientMemory::devices() {
  if (devices_ == nullptr) {
    devices_ = std::make_shared<device_memory::OpenDevices>(services_.options.drivers,
                                                            services_.options.call_driver);
  }
  return devices_;
}

Status ClientMemory::StartCopierIfNeeded(tenant::Pool& pool) {
  if (copier_ != nullptr || (trusted_ && !expects_devices_)) return OkStatus();
  return StartCopier(pool);
}

Status ClientMemory::StartCopier(tenant::Pool& pool) {
  const size_t workers = services_.workers.worker_count();
  tenant::Charge heap;
  if (const int error =
          services_.rules.Take(pool, Resource::kHeapBytes, HeapOfCopier(workers), heap))
    return Status(error, "copier: limit of the pool");
  // The report may arrive after the pools are destroyed, so it does not hold the charges.
  const uint64_t number =
      services_.returned_calls->Expect([weak = std::weak_ptr(remains_), &services = services_] {
        if (const auto known = weak.lock()) known->ended = true;
        if (services.on_copier_ended) services.on_copier_ended();
      });
  // Destroyed, and so reported, when the thread has released client memory for good.
  const std::shared_ptr<void> keepalive(
      nullptr, [parts = parts_, returns = services_.returned_calls, number](void*) {
        returns->Report(number);
      });
  auto copier = memory::Copier::Start(space_, keepalive, {workers, 64, services_.wake_fds});
  if (!copier.ok()) return copier.status();
  copier_ = std::move(*copier);
  remains_->ended = false;
  remains_->charges.push_back(std::move(heap));
  return OkStatus();
}

std::shared_ptr<device_memory::EngineCosts> ClientMemory::KeepDevice(DeviceCharges charges) {
  const uint64_t device = remains_->next_device++;
  remains_->devices.emplace(device, std::move(charges));
  const uint64_t number = services_.returned_calls->Expect(
      [weak = std::weak_ptr(remains_), device, &services = services_] {
        if (const auto known = weak.lock()) known->devices.erase(device);
        if (services.on_copier_ended) services.on_copier_ended();
      });
  return std::make_shared<device_memory::EngineCosts>(
      [returns = services_.returned_calls, number] { returns->Report(number); });
}

void ClientMemory::Release() {
  copier_.reset();
  parts_.reset();
  space_.reset();
  memory_.reset();
  by_descriptor_ = nullptr;
}

}  // namespace rocegw::session
