// SPDX-License-Identifier: Apache-2.0
// Allowed peers of a pool that change while its programs run: who talks to somebody that it may not
// talk to any more is cut off. A rule of who may talk to whom holds for what there is, unlike a
// limit, which takes nothing away. Control thread.
#pragma once

#include <string>
#include <vector>

#include "gateway/tenant/registry.h"
#include "gateway/worker/control_message.h"

namespace rocegw::session {

class AttachServer;
struct Services;

class PeerReview {
 public:
  PeerReview(Services& services, const AttachServer& attach)
      : services_(services), attach_(attach) {}

  // After the settings of that tenant, or of one of its pools, have changed.
  void OfTenant(const std::string& tenant);
  void OfPool(tenant::Pool& pool);

 private:
  void Tell(const tenant::Share* pool, const std::vector<worker::PeerRevoked>& revoked);
  void Disconnect(const tenant::Pool& pool);

  Services& services_;
  const AttachServer& attach_;
};

}  // namespace rocegw::session
