// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pool_offer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

namespace rocegw::agent {
namespace {

// Converts "tenants/T/pools/P" to "rocegw.io/T.P".
std::string ResourceOf(const std::string& pool) {
  const std::filesystem::path path(pool);
  const std::string tenant = path.parent_path().parent_path().filename();
  return kResourceDomain + tenant + "." + path.filename().string();
}

}  // namespace

std::vector<PoolOffer> OfferOf(const gateway::v1::GetConfigResponse& config,
                               const std::vector<types::v1::PoolUsage>& pools,
                               const std::vector<std::string>& by_claim) {
  std::map<std::string, PoolOffer> offers;  // by pool
  for (const types::v1::ConfigObject& object : config.objects()) {
    if (!object.has_pool()) continue;
    const types::v1::AttachRules& attach = object.pool().spec().attach();
    PoolOffer offer{object.name(), ResourceOf(object.name()), {}, {}};
    offer.by_claim = std::ranges::any_of(
        by_claim, [&](const std::string& named) { return named == "*" || named == object.name(); });
    const types::v1::Limits& peak = object.pool().spec().quota().peak();
    offer.most_qps = peak.qps();
    offer.most_bytes_per_second = peak.bytes_per_second();
    for (const types::v1::ServiceAccount& account : attach.service_accounts()) {
      offer.pods.push_back(
          {account.namespace_(),
           account.name(),
           {account.namespace_labels().begin(), account.namespace_labels().end()}});
    }
    if (!offer.pods.empty() && attach.identity() == types::v1::REQUIRED)
      offers.emplace(object.name(), std::move(offer));
  }
  for (const types::v1::PoolUsage& usage : pools) {
    const auto known = offers.find(usage.pool());
    if (known == offers.end() || usage.leaving()) continue;
    for (const std::string& socket : usage.sockets()) {
      const std::filesystem::path directory = std::filesystem::path(socket).parent_path();
      const std::string id =
          directory.parent_path().filename().string() + "-" + directory.filename().string();
      known->second.slots.push_back({id, directory, socket});
    }
  }
  std::vector<PoolOffer> result;
  for (auto& [pool, offer] : offers) result.push_back(std::move(offer));
  std::ranges::sort(result, {}, &PoolOffer::resource);
  if (result.size() > kMostOffers) result.resize(kMostOffers);
  return result;
}

}  // namespace rocegw::agent
