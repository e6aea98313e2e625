// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/peer_review.h"

#include <map>
#include <string>

#include "gateway/session/attach/attach_server.h"
#include "gateway/session/client_session.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/services.h"

namespace rocegw::session {

void PeerReview::OfTenant(const std::string& tenant) {
  services_.pools.ForEachPool([&](tenant::Pool& pool) {
    if (tenant::TenantOf(pool.name()) == tenant) OfPool(pool);
  });
}

void PeerReview::OfPool(tenant::Pool& pool) {
  const worker::UsePeerRules use{&pool.share(), services_.rules.PeerRulesOf(pool)};
  services_.workers.Broadcast(
      [use](WorkerIndex) { return use; },
      [this, use](const worker::ControlReply& reply) { Tell(use.pool, reply.revoked); });
  Disconnect(pool);
}

// The pool may have been removed before the workers answer.
void PeerReview::Tell(const tenant::Share* pool, const std::vector<worker::PeerRevoked>& revoked) {
  std::map<wire::Gid, uint32_t> by_peer;
  for (const worker::PeerRevoked& one : revoked) by_peer[one.peer] += one.queue_pairs;
  services_.pools.ForEachPool([&](tenant::Pool& known) {
    if (&known.share() != pool) return;
    for (const auto& [peer, count] : by_peer) services_.rules.TellRevoked(known, peer, count);
  });
}

// Disconnects established connections. Those being set up fail by themselves
// (PoolRules::CheckPeer).
void PeerReview::Disconnect(const tenant::Pool& pool) {
  for (const cm::ConnectionRow& connection : cm_.engine().Connections()) {
    ClientSession* const session = attach_.Find(connection.owner);
    if (session == nullptr || &session->pool() != &pool || pool.MayTalkTo(connection.remote_gid))
      continue;
    // Unconnected ids return an error, which is expected.
    (void)cm_.Run(*session, connection.id, cm::Disconnect{});
  }
}

}  // namespace rocegw::session
