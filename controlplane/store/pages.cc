// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/pages.h"

#include <utility>

namespace rocegw::store {

void EachPage(Store& store, RangeRequest request, std::function<bool(const RangeResult&)> take,
              std::function<void(StatusOr<Revision>)> done) {
  RangeRequest asked = request;
  store.RangeAsync(std::move(asked), [&store, request = std::move(request), take = std::move(take),
                                      done = std::move(done)](StatusOr<RangeResult> page) mutable {
    if (!page.ok()) return done(page.status());
    const bool enough = !take(*page);
    if (enough || !page->more) return done(page->revision);
    request.revision = page->revision;
    request.range = request.range.After(page->entries.back().key);
    EachPage(store, std::move(request), std::move(take), std::move(done));
  });
}

}  // namespace rocegw::store
