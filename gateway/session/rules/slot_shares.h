// SPDX-License-Identifier: Apache-2.0
// Shares of the attach sockets that have limits below those of their pool. Sessions and XRC domains
// of one socket have one share, which lives as long as they do. Control thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "gateway/tenant/registry.h"
#include "gateway/tenant/slot_share.h"

namespace rocegw::session {

class SlotShares {
 public:
  // Returns the share of the socket; nullptr: `limits` has none.
  std::shared_ptr<tenant::SlotShare> Of(tenant::Pool& pool, const std::string& path,
                                        const tenant::SlotLimits& limits) {
    if (!limits.any()) return nullptr;
    std::weak_ptr<tenant::SlotShare>& known = by_path_[path];
    auto slot = known.lock();
    // Other limits are those of another claim: sessions of an earlier one are ending.
    if (slot == nullptr || &slot->pool() != &pool.share() || slot->limits() != limits) {
      slot = std::make_shared<tenant::SlotShare>(pool.share(), limits, path);
      known = slot;
    }
    return slot;
  }
  // Forgets a socket that nobody listens at any more.
  void Forget(const std::string& path) { by_path_.erase(path); }

 private:
  std::map<std::string, std::weak_ptr<tenant::SlotShare>> by_path_;
};

}  // namespace rocegw::session
