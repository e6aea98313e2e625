// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/dra/resource_slices.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "agent/kube/dra/allocated_claim.h"

namespace rocegw::agent {
namespace {

using nlohmann::json;

// Kubernetes' limit of devices per slice.
constexpr size_t kDevicesOfASlice = 128;
constexpr size_t kLongestLabel = 63;
constexpr uint64_t kBitsOfAByte = 8;

struct PoolParts {
  std::string tenant;
  std::string pool;
};

PoolParts PartsOf(const PoolOffer& offer) {
  const std::string rest = offer.resource.substr(std::strlen(kResourceDomain));
  const size_t dot = rest.find('.');
  return {rest.substr(0, dot), rest.substr(dot + 1)};
}

// Returns a name such as "red-train", truncated so that the suffix fits.
std::string LabelOf(const PoolOffer& offer, const std::string& ending) {
  const auto [tenant, pool] = PartsOf(offer);
  std::string head = tenant + "-" + pool;
  head.resize(std::min(head.size(), kLongestLabel - ending.size() - 1));
  while (head.ends_with('-')) head.pop_back();
  return head + "-" + ending;
}

json AttributesOf(const PoolOffer& offer, int numa_node) {
  const auto [tenant, pool] = PartsOf(offer);
  json attributes = {{"tenant", {{"string", tenant}}}, {"pool", {{"string", pool}}}};
  if (numa_node >= 0) attributes["numaNode"] = {{"int", numa_node}};
  return attributes;
}

// Returns an amount that claims share. A claim without an amount gets `usual`.
json Consumable(uint64_t amount, uint64_t usual) {
  return {{"value", std::to_string(amount)},
          {"requestPolicy", {{"default", std::to_string(usual)}, {"validRange", {{"min", "1"}}}}}};
}

json CapacityOf(const PoolOffer& offer) {
  const uint64_t slots = offer.slots.size();
  json capacity;
  capacity["slots"] = {{"value", std::to_string(slots)},
                       {"requestPolicy", {{"default", "1"}, {"validValues", {"1"}}}}};
  const auto share = [&](uint64_t amount) { return std::max<uint64_t>(1, amount / slots); };
  if (offer.most_qps > 0) capacity["qps"] = Consumable(offer.most_qps, share(offer.most_qps));
  if (offer.most_bytes_per_second > 0) {
    const uint64_t bits = offer.most_bytes_per_second * kBitsOfAByte;
    capacity["bandwidth"] = Consumable(bits, share(bits));
  }
  return capacity;
}

}  // namespace

std::string PoolDeviceName(const PoolOffer& offer) {
  const std::string& id = offer.slots.front().id;
  return LabelOf(offer, id.substr(0, id.rfind('-')));
}

std::string SlotDeviceName(const PoolOffer& offer, const Slot& slot) {
  return LabelOf(offer, slot.id);
}

std::vector<json> DevicesOf(const SlotAllocator& slots, DeviceSharing sharing) {
  std::vector<json> devices;
  if (!slots.IsGatewayHealthy()) return devices;
  for (const PoolOffer& offer : slots.ClaimPools()) {
    // A slot is unhealthy while it is cleared; it is not removed for that.
    const std::vector<OfferedSlot> offered = slots.Slots(offer.resource);
    if (offered.empty()) continue;
    const json attributes = AttributesOf(offer, offered.front().numa_node);
    if (sharing == DeviceSharing::kShared) {
      devices.push_back({{"name", PoolDeviceName(offer)},
                         {"attributes", attributes},
                         {"capacity", CapacityOf(offer)},
                         {"allowMultipleAllocations", true}});
      continue;
    }
    for (const Slot& slot : offer.slots)
      devices.push_back({{"name", SlotDeviceName(offer, slot)}, {"attributes", attributes}});
  }
  if (devices.size() > kMostDevices) devices.resize(kMostDevices);
  return devices;
}

std::vector<json> SlicesOf(const std::vector<json>& devices, const std::string& node,
                           int64_t generation) {
  const size_t count =
      std::max<size_t>(1, (devices.size() + kDevicesOfASlice - 1) / kDevicesOfASlice);
  std::vector<json> slices;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * kDevicesOfASlice;
    const size_t end = std::min(devices.size(), begin + kDevicesOfASlice);
    json part = json::array();
    for (size_t at = begin; at < end; ++at) part.push_back(devices[at]);
    slices.push_back(
        {{"driver", kDraDriver},
         {"nodeName", node},
         {"pool", {{"name", node}, {"generation", generation}, {"resourceSliceCount", count}}},
         {"devices", part}});
  }
  return slices;
}

}  // namespace rocegw::agent
