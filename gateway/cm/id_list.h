// SPDX-License-Identifier: Apache-2.0
// Lists of ids that share an owner or a listener, so that a command on all of them does not look at
// others' ids. Intrusive: entering a list allocates nothing. The table of ids keeps their
// addresses.
#pragma once

#include "gateway/cm/cm_id.h"

namespace rocegw::cm {

// Puts the id in front of the list. `kLinks`: the links that the list uses.
template <IdLinks Id::*kLinks>
void Link(Id*& first, Id& id) {
  (id.*kLinks) = {nullptr, first};
  if (first != nullptr) (first->*kLinks).previous = &id;
  first = &id;
}

// Removes the id, which may not be in the list.
template <IdLinks Id::*kLinks>
void Unlink(Id*& first, Id& id) {
  IdLinks& links = id.*kLinks;
  if (links.previous == nullptr && first != &id) return;
  (links.previous == nullptr ? first : (links.previous->*kLinks).next) = links.next;
  if (links.next != nullptr) (links.next->*kLinks).previous = links.previous;
  links = {};
}

}  // namespace rocegw::cm
