// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/dra/allocated_claim.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/kube/dra/quantity.h"

namespace rocegw::agent {
namespace {

using nlohmann::json;

// Kubernetes allows fewer devices per claim.
constexpr size_t kMostDevices = 32;

std::string TextOf(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Returns the value that the pointer leads to; null: none.
const json& At(const json& object, const char* pointer) {
  static const json kNothing;
  const json::json_pointer at(pointer);
  return object.is_object() && object.contains(at) ? object.at(at) : kNothing;
}

// Returns the amount of a capacity that the result consumes; 0: none.
uint64_t Consumed(const json& result, const std::string& capacity) {
  const json& consumed = At(result, "/consumedCapacity");
  if (!consumed.is_object()) return 0;
  // Names may be written with the driver's domain.
  for (const std::string& name : {capacity, std::string(kDraDriver) + "/" + capacity}) {
    const auto found = consumed.find(name);
    if (found != consumed.end() && found->is_string())
      return ParseQuantity(found->get<std::string>()).value_or(0);
  }
  return 0;
}

// Returns the limit of a gateway for an amount of bits per second; at least one, since 0 means
// none.
uint64_t BytesOf(uint64_t bits) { return bits == 0 ? 0 : std::max<uint64_t>(1, bits / 8); }

Status Refused(std::string text) { return {EINVAL, std::move(text)}; }

}  // namespace

std::string ClaimPath(const std::string& name_space, const std::string& name) {
  return "/apis/resource.k8s.io/v1/namespaces/" + name_space + "/resourceclaims/" + name;
}

StatusOr<AllocatedClaim> ReadAllocatedClaim(const json& object, const std::string& uid,
                                            const std::string& node) {
  const json& metadata = At(object, "/metadata");
  if (!metadata.is_object() || TextOf(metadata, "uid") != uid)
    return Refused("the claim of that name is another one now");
  const json& results = At(object, "/status/allocation/devices/results");
  if (!results.is_array()) return Refused("the claim is not allocated");
  AllocatedClaim claim;
  for (const json& result : results) {
    if (!result.is_object() || TextOf(result, "driver") != kDraDriver) continue;
    if (TextOf(result, "pool") != node)
      return Refused("the claim was allocated on node " + TextOf(result, "pool"));
    if (result.value("adminAccess", false))
      return Refused("administrative access to a pool is not offered: use rocegwctl");
    claim.devices.push_back({TextOf(result, "request"),
                             TextOf(result, "device"),
                             {Consumed(result, "qps"), BytesOf(Consumed(result, "bandwidth"))}});
  }
  if (claim.devices.empty()) return Refused("the claim was allocated nothing of rocegw");
  if (claim.devices.size() > kMostDevices) return Refused("the claim has too many devices");
  const json& reserved = At(object, "/status/reservedFor");
  if (!reserved.is_array() || reserved.empty()) return Refused("the claim is reserved for no pod");
  if (reserved.size() > 1) {
    return Refused("the claim is reserved for " + std::to_string(reserved.size()) +
                   " pods, and a slot is for one: give each pod a claim of its own "
                   "(resourceClaimTemplateName)");
  }
  const json& holder = reserved.front();
  if (!holder.is_object() || TextOf(holder, "resource") != "pods")
    return Refused("the claim is reserved for something that is no pod");
  claim.pod = {TextOf(metadata, "namespace"), TextOf(holder, "name")};
  claim.pod_uid = TextOf(holder, "uid");
  if (claim.pod.name_space.empty() || claim.pod.name.empty() || claim.pod_uid.empty())
    return Refused("the claim does not say which pod it is reserved for");
  return claim;
}

}  // namespace rocegw::agent
