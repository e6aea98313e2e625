// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/objects/session_quota.h"

#include <algorithm>
#include <cerrno>

#include "gateway/session/heap_return.h"
#include "gateway/session/rules/pool_rules.h"

namespace rocegw::session {

using tenant::Resource;

int SessionQuota::Take(Resource resource, uint64_t amount) {
  const bool of_slot = resource == Resource::kQps && slot_ != nullptr;
  if (of_slot && !slot_->TakeQps(amount)) {
    rules_.TellRefused(pool_, pool_.RefuseSlot(*slot_));
    return ENOMEM;
  }
  const int error = rules_.Take(pool_, resource, amount);
  if (error != 0 && of_slot) slot_->GiveQps(amount);
  return error;
}

int SessionQuota::Take(Resource resource, uint64_t amount, tenant::Charge& charge) {
  return rules_.Take(pool_, resource, amount, charge);
}

void SessionQuota::Give(Resource resource, uint64_t amount) {
  if (resource == Resource::kQps && slot_ != nullptr) slot_->GiveQps(amount);
  pool_.Give(resource, amount);
  heap_.Destroyed(1);
}

uint64_t SessionQuota::Peak(Resource resource) const {
  const uint64_t pool = pool_.Peak(resource);
  return resource == Resource::kQps && slot_ != nullptr ? std::min(pool, slot_->MostQps()) : pool;
}

}  // namespace rocegw::session
