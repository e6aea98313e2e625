// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/objects/xrc_domains.h"

#include <cerrno>
#include <utility>

namespace rocegw::session {

StatusOr<XrcDomains::Opened> XrcDomains::Open(Wanted wanted, WorkerIndex worker) {
  if (wanted.file.valid()) {
    const auto known = by_file_.find({wanted.pool, wanted.device, wanted.inode});
    if (known != by_file_.end()) {
      if ((wanted.flags & ROCEGW_XRCD_EXCLUSIVE) != 0)
        return Status(EINVAL, "there is a domain of that file");
      ++known->second->openers;
      return Opened{known->second, false};
    }
    if ((wanted.flags & ROCEGW_XRCD_CREATE) == 0)
      return Status(EAGAIN, "there is no domain of that file");
  }
  while (domains_.contains(kDomain | next_id_)) next_id_ = (next_id_ + 1) & ~kDomain;
  auto domain = std::make_unique<XrcDomain>();
  domain->id = SessionId{kDomain | next_id_};
  next_id_ = (next_id_ + 1) & ~kDomain;
  domain->pool = wanted.pool;
  domain->device = wanted.device;
  domain->worker = worker;
  domain->openers = 1;
  domain->file = std::move(wanted.file);
  domain->inode = wanted.inode;
  XrcDomain* const made = domain.get();
  domains_.emplace(made->id.value, std::move(domain));
  if (made->file.valid()) by_file_.emplace(KeyOf(*made), made);
  return Opened{made, true};
}

XrcDomain* XrcDomains::Adopt(std::unique_ptr<XrcDomain> same) {
  if (!IsDomain(same->id)) return nullptr;
  const auto [known, fresh] = domains_.try_emplace(same->id.value);
  std::unique_ptr<XrcDomain>& domain = known->second;
  if (fresh) {
    domain = std::move(same);
    if (domain->file.valid()) by_file_.emplace(KeyOf(*domain), domain.get());
  } else if (!domain->file.valid() || domain->pool != same->pool ||
             domain->device != same->device || domain->worker != same->worker ||
             domain->inode != same->inode) {
    return nullptr;
  }
  ++domain->openers;
  return domain.get();
}

std::unique_ptr<XrcDomain> XrcDomains::Close(XrcDomain& domain) {
  if (--domain.openers != 0) return nullptr;
  const auto it = domains_.find(domain.id.value);
  std::unique_ptr<XrcDomain> last = std::move(it->second);
  domains_.erase(it);
  if (last->file.valid()) by_file_.erase(KeyOf(*last));
  return last;
}

XrcDomain* XrcDomains::Find(SessionId id) const {
  const auto it = domains_.find(id.value);
  return it == domains_.end() ? nullptr : it->second.get();
}

XrcTarget* XrcDomains::FindTarget(SessionId id, Qpn qpn) const {
  const XrcDomain* const domain = Find(id);
  if (domain == nullptr) return nullptr;
  const auto target = domain->targets.find(qpn.value);
  return target == domain->targets.end() ? nullptr : target->second.get();
}

uint32_t XrcDomains::TakeNumber() {
  if (numbers_.size() >= kMostNumbers) return 0;
  for (;;) {
    const uint32_t number = next_number_;
    next_number_ = next_number_ == kHighestNumber ? 1 : next_number_ + 1;
    if (numbers_.insert(number).second) return number;
  }
}

}  // namespace rocegw::session
