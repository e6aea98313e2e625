// SPDX-License-Identifier: Apache-2.0
// Rules for what a pool's programs take, begin and reach: its limits, the drain of the gateway, its
// peers and its features. A refusal is counted and reported. Control thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/session/drain.h"
#include "gateway/session/options.h"
#include "gateway/session/rules/reports.h"
#include "gateway/tenant/charge.h"
#include "gateway/tenant/registry.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::session {

class PoolRules {
 public:
  // All arguments outlive the object.
  PoolRules(const Options& options, const Drain& drain, Reports& reports)
      : options_(options), drain_(drain), reports_(reports) {}

  void TellRefused(const tenant::Pool& pool, const tenant::Refusal& refusal);

  // Takes an amount from the pool. Returns 0, or the errno to answer with.
  [[nodiscard]] int Take(tenant::Pool& pool, Resource resource, uint64_t amount = 1);
  // Takes an amount for the lifetime of `charge`.
  [[nodiscard]] int Take(tenant::Pool& pool, Resource resource, uint64_t amount,
                         tenant::Charge& charge);
  [[nodiscard]] int TakeConnect(tenant::Pool& pool);
  // The same for a request of a peer, which counts apart.
  [[nodiscard]] int TakeRequest(tenant::Pool& pool);
  // Writes an amount, or reads it and takes it for the lifetime of `charge`, whatever the limits
  // are now.
  static void HandOver(hand_over::StateStream& state, tenant::Pool& pool, Resource resource,
                       tenant::Charge& charge);

  // Returns 0, or ESHUTDOWN while the gateway drains: `what` must not begin.
  [[nodiscard]] int CheckDrain(const tenant::Pool& pool, const char* what);
  // Returns 0, or EACCES.
  [[nodiscard]] int CheckPeer(tenant::Pool& pool, const wire::Gid& peer);
  // Reports queue pairs whose connection to the peer was revoked.
  void TellRevoked(tenant::Pool& pool, const wire::Gid& peer, uint32_t queue_pairs);
  // Returns the rules for workers, which live as long as this object; nullptr: any peer is allowed.
  const verbs::PeerRules* PeerRulesOf(const tenant::Pool& pool);
  // Returns true if the pool's devices have FLUSH and ATOMIC WRITE.
  bool HasPlacement(const tenant::Pool& pool) const;

 private:
  const Options& options_;
  const Drain& drain_;
  Reports& reports_;
  std::vector<std::unique_ptr<const verbs::PeerRules>> all_peer_rules_;
};

}  // namespace rocegw::session
