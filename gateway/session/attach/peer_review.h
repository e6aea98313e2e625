// SPDX-License-Identifier: Apache-2.0
// Enforcement of changed peer rules on running programs: cuts off connections to peers that a pool
// may not talk to any more. Such a rule holds for existing connections, unlike a limit, which takes
// nothing away. Control thread.
#pragma once

#include <string>
#include <vector>

#include "gateway/tenant/registry.h"
#include "gateway/worker/control/control_message.h"

namespace rocegw::session {

class AttachServer;
class CmBinding;
struct Services;

class PeerReview {
 public:
  PeerReview(Services& services, CmBinding& cm, const AttachServer& attach)
      : services_(services), cm_(cm), attach_(attach) {}

  // Call after the settings of that tenant, or of one of its pools, have changed.
  void OfTenant(const std::string& tenant);
  void OfPool(tenant::Pool& pool);

 private:
  void Tell(const tenant::Share* pool, const std::vector<worker::PeerRevoked>& revoked);
  void Disconnect(const tenant::Pool& pool);

  Services& services_;
  CmBinding& cm_;
  const AttachServer& attach_;
};

}  // namespace rocegw::session
