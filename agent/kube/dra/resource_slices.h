// SPDX-License-Identifier: Apache-2.0
// Pools of a node's gateway as devices of dynamic resource allocation (resource.k8s.io/v1). Pure.
//
// If Kubernetes lets claims share a device (DRAConsumableCapacity), a pool is one device: each
// claim takes a slot of it, and amounts of queue pairs and bandwidth if its quota has them.
// Otherwise each slot is a device for one claim.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "agent/kube/pool_offer.h"
#include "agent/kube/slot_allocator.h"

namespace rocegw::agent {

enum class DeviceSharing { kShared, kSlots };

// Returns the device name of a whole pool, or of one slot: a DNS label that ends with the name of
// the pool's socket directory, so that a recreated pool is another device. The pool has a slot.
std::string PoolDeviceName(const PoolOffer& offer);
std::string SlotDeviceName(const PoolOffer& offer, const Slot& slot);

// Returns the elements of spec.devices: none while the gateway is unhealthy, at most kMostDevices.
inline constexpr size_t kMostDevices = 1024;
std::vector<nlohmann::json> DevicesOf(const SlotAllocator& slots, DeviceSharing sharing);

// Returns the specs of the node's slices with these devices: at least one, so that a node without
// devices publishes that.
std::vector<nlohmann::json> SlicesOf(const std::vector<nlohmann::json>& devices,
                                     const std::string& node, int64_t generation);

}  // namespace rocegw::agent
