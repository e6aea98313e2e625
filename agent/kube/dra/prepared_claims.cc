// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/dra/prepared_claims.h"

#include <cerrno>
#include <nlohmann/json.hpp>

#include "gateway/disk/durable_file.h"

namespace rocegw::agent {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;

json ToJson(const PreparedClaim& claim) {
  json devices = json::array();
  for (const PreparedDevice& device : claim.devices) {
    devices.push_back({{"request", device.request},
                       {"device", device.device},
                       {"resource", device.resource},
                       {"slot", device.slot},
                       {"qps", device.amounts.qps},
                       {"bytes_per_second", device.amounts.bytes_per_second}});
  }
  return {{"claim", claim.claim},
          {"namespace", claim.pod.name_space},
          {"pod", claim.pod.name},
          {"pod_uid", claim.pod_uid},
          {"devices", devices}};
}

PreparedClaim FromJson(const json& object) {
  PreparedClaim claim;
  claim.claim = object.value("claim", "");
  claim.pod = {object.at("namespace").get<std::string>(), object.at("pod").get<std::string>()};
  claim.pod_uid = object.at("pod_uid").get<std::string>();
  for (const json& device : object.at("devices")) {
    claim.devices.push_back(
        {device.at("request").get<std::string>(),
         device.at("device").get<std::string>(),
         device.at("resource").get<std::string>(),
         device.at("slot").get<std::string>(),
         // Checkpoints of earlier agents have no amounts.
         {device.value("qps", uint64_t{0}), device.value("bytes_per_second", uint64_t{0})}});
  }
  return claim;
}

}  // namespace

StatusOr<PreparedClaims> LoadPreparedClaims(const std::string& file) {
  const auto text = ReadSmallFile(file);
  if (!text.ok()) return text.status();
  try {
    const json saved = json::parse(text.value());
    if (saved.at("version") == kVersion) {
      PreparedClaims claims;
      for (const auto& [uid, claim] : saved.at("claims").items()) claims[uid] = FromJson(claim);
      return claims;
    }
  } catch (const json::exception&) {
  }
  return Status(EBADMSG, file +
                             " is damaged or of another version: remove it, and delete the pods "
                             "of this node that have claims of rocegw");
}

Status SavePreparedClaims(const std::string& file, const PreparedClaims& claims) {
  json all = json::object();
  for (const auto& [uid, claim] : claims) all[uid] = ToJson(claim);
  return WriteDurably(file, json{{"version", kVersion}, {"claims", all}}.dump(), 0600);
}

}  // namespace rocegw::agent
