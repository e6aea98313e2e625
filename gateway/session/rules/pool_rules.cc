// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/rules/pool_rules.h"

#include <cerrno>
#include <utility>

namespace rocegw::session {

void PoolRules::TellRefused(const tenant::Pool& pool, const tenant::Refusal& refusal) {
  reports_.Tell("QUOTA_EXCEEDED", pool.name(), std::string(refusal.limit), refusal.text);
}

int PoolRules::Take(tenant::Pool& pool, Resource resource, uint64_t amount) {
  const auto refusal = pool.Take(resource, amount);
  if (!refusal) return 0;
  TellRefused(pool, *refusal);
  return refusal->limit == tenant::NameOf(Resource::kDescriptors) ? EMFILE : ENOMEM;
}

int PoolRules::Take(tenant::Pool& pool, Resource resource, uint64_t amount,
                    tenant::Charge& charge) {
  const int error = Take(pool, resource, amount);
  if (error == 0) charge = {pool, resource, amount};
  return error;
}

int PoolRules::TakeConnect(tenant::Pool& pool) {
  const auto refusal = pool.TakeConnect(ControlLoop::Now());
  if (!refusal) return 0;
  TellRefused(pool, *refusal);
  return EAGAIN;
}

int PoolRules::TakeRequest(tenant::Pool& pool) {
  const auto refusal = pool.TakeRequest(ControlLoop::Now());
  if (!refusal) return 0;
  TellRefused(pool, *refusal);
  return EAGAIN;
}

int PoolRules::CheckDrain(const tenant::Pool& pool, const char* what) {
  if (!drain_.active()) return 0;
  reports_.Tell("DRAINING", pool.name(), what,
                pool.name() + ": " + what + " refused, the gateway is being drained");
  return ESHUTDOWN;
}

int PoolRules::CheckPeer(tenant::Pool& pool, const wire::Gid& peer) {
  if (pool.MayTalkTo(peer)) return 0;
  pool.CountPeerRefused();
  reports_.Tell("PEER_NOT_ALLOWED", pool.name(), "",
                pool.name() + ": its programs may not talk to " + wire::AddressText(peer) +
                    " (allowed_peers)");
  return EACCES;
}

void PoolRules::TellRevoked(tenant::Pool& pool, const wire::Gid& peer, uint32_t queue_pairs) {
  pool.CountPeerRefused(queue_pairs);
  const std::string address = wire::AddressText(peer);
  reports_.Tell(
      "PEER_NOT_ALLOWED", pool.name(), address,
      pool.name() + ": its programs may not talk to " + address +
          " any more (allowed_peers); queue pairs that failed: " + std::to_string(queue_pairs));
}

const verbs::PeerRules* PoolRules::PeerRulesOf(const tenant::Pool& pool) {
  const auto& of_tenant = pool.tenant().settings().allowed_peers;
  const auto& of_pool = pool.settings().allowed_peers;
  if (of_tenant.empty() && of_pool.empty()) return nullptr;
  for (const auto& known : all_peer_rules_) {
    if (known->tenant == of_tenant && known->pool == of_pool) return known.get();
  }
  auto rules = std::make_unique<verbs::PeerRules>();
  rules->tenant = of_tenant;
  rules->pool = of_pool;
  all_peer_rules_.push_back(std::move(rules));
  return all_peer_rules_.back().get();
}

bool PoolRules::HasPlacement(const tenant::Pool& pool) const {
  if (options_.placement == MemoryPlacement::kDisabled) return false;
  return pool.settings().placement.value_or(options_.placement == MemoryPlacement::kEnabled);
}

}  // namespace rocegw::session
