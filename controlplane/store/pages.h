// SPDX-License-Identifier: Apache-2.0
// Reads a range page by page, all at one revision, without waiting. Callbacks run on threads of the
// store.
#pragma once

#include <functional>

#include "controlplane/store/store.h"

namespace rocegw::store {

// `take` returns false to end early. `done` is called once, with the revision; an error of a page
// ends the reading.
void EachPage(Store& store, RangeRequest request, std::function<bool(const RangeResult&)> take,
              std::function<void(StatusOr<Revision>)> done);

}  // namespace rocegw::store
