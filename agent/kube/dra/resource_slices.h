// SPDX-License-Identifier: Apache-2.0
// Pools of a node's gateway as devices of dynamic resource allocation (resource.k8s.io/v1). Pure.
//
// Where Kubernetes lets claims share a device (DRAConsumableCapacity), a pool is one device, which
// each claim takes a slot of, and amounts of queue pairs and bandwidth if its quota has them. Else
// each slot is a device for one claim.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "agent/kube/pool_offer.h"
#include "agent/kube/slot_allocator.h"

namespace rocegw::agent {

enum class DeviceSharing { kShared, kSlots };

// Name of the device of a whole pool, or of one slot: a DNS label, which ends with the folder of
// the pool's sockets, so that a pool that is made anew is another device. The pool has a slot.
std::string PoolDeviceName(const PoolOffer& offer);
std::string SlotDeviceName(const PoolOffer& offer, const Slot& slot);

// Elements of spec.devices: none while the gateway is not healthy. At most kMostDevices.
inline constexpr size_t kMostDevices = 1024;
std::vector<nlohmann::json> DevicesOf(const SlotAllocator& slots, DeviceSharing sharing);

// Specs of the node's slices, which hold the devices: always at least one, so that a node without
// devices says so.
std::vector<nlohmann::json> SlicesOf(const std::vector<nlohmann::json>& devices,
                                     const std::string& node, int64_t generation);

}  // namespace rocegw::agent
