// SPDX-License-Identifier: Apache-2.0
// Connection requests that the program has not used yet, in a list for each listener: they end with
// it, and a listener without requests is destroyed without a look at other ids. The links are
// handles in the ids themselves, so that a request costs no memory. Control thread.
#pragma once

#include "gateway/session/objects/handle_table.h"
#include "gateway/session/objects/objects.h"

namespace rocegw::session {

// Adds the id `request` to the list of `listener`.
inline void LinkRequest(const HandleTable<CmId>& ids, uint32_t listener, uint32_t request) {
  CmId& of = *ids.Find(listener);
  CmId& added = *ids.Find(request);
  added.listener = listener;
  added.next_request = of.first_request;
  if (CmId* const next = ids.Find(of.first_request)) next->previous_request = request;
  of.first_request = request;
}

// Takes an id out of its listener's list, if it is in one.
inline void UnlinkRequest(const HandleTable<CmId>& ids, uint32_t request) {
  CmId& removed = *ids.Find(request);
  if (removed.listener == 0) return;
  if (CmId* const next = ids.Find(removed.next_request))
    next->previous_request = removed.previous_request;
  if (CmId* const previous = ids.Find(removed.previous_request)) {
    previous->next_request = removed.next_request;
  } else {
    ids.Find(removed.listener)->first_request = removed.next_request;
  }
  removed.listener = removed.next_request = removed.previous_request = 0;
}

}  // namespace rocegw::session
