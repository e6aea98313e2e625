// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/backlog.h"

#include "gateway/cm/id_list.h"

namespace rocegw::cm {

bool Backlog::HasPlace(const Id& listener, const wire::Gid& source) const {
  if (listener.waiting_requests < listener.backlog) return true;
  const uint32_t places = 2 * listener.backlog;
  if (listener.waiting_requests >= places) return false;
  const auto at = of_source_.find({listener.handle.value, source});
  return at == of_source_.end() || at->second < places - listener.waiting_requests;
}

void Backlog::Enter(Id& listener, Id& request) {
  ++listener.waiting_requests;
  Link<&Id::of_listener>(listener.first_request, request);
  const OfSource::key_type key{listener.handle.value, request.destination_gid};
  if (const auto at = of_source_.find(key); at != of_source_.end()) {
    ++at->second;
  } else {
    kept_.Insert(of_source_, key, uint32_t{1});
  }
}

void Backlog::Leave(Id& listener, Id& request) {
  if (!Contains(listener, request)) return;
  --listener.waiting_requests;
  Unlink<&Id::of_listener>(listener.first_request, request);
  const auto at = of_source_.find({listener.handle.value, request.destination_gid});
  if (--at->second == 0) kept_.Erase(of_source_, at);
}

}  // namespace rocegw::cm
