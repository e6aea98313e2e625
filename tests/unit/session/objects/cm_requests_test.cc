// SPDX-License-Identifier: Apache-2.0
// Lists of unused connection requests beside a simple model.
#include "gateway/session/objects/cm_requests.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace rocegw::session {
namespace {

std::set<uint32_t> RequestsOf(const HandleTable<CmId>& ids, uint32_t listener) {
  std::set<uint32_t> requests;
  for (uint32_t at = ids.Find(listener)->first_request; at != 0; at = ids.Find(at)->next_request)
    requests.insert(at);
  return requests;
}

TEST(CmRequests, RandomOrder_EachListHasWhatWasNotTakenOut) {
  std::mt19937 random(7);
  HandleTable<CmId> ids;
  std::map<uint32_t, std::set<uint32_t>> model;
  for (int i = 0; i < 3; ++i) model[ids.Add(std::make_unique<CmId>())] = {};
  std::vector<uint32_t> linked;
  for (int step = 0; step < 2000; ++step) {
    const uint32_t listener = std::next(model.begin(), random() % 3)->first;
    if (random() % 2 == 0) {
      const uint32_t request = ids.Add(std::make_unique<CmId>());
      LinkRequest(ids, listener, request);
      model[listener].insert(request);
      linked.push_back(request);
    } else if (!linked.empty()) {
      const size_t at = random() % linked.size();
      const uint32_t request = linked[at];
      linked.erase(linked.begin() + static_cast<ptrdiff_t>(at));
      model[ids.Find(request)->listener].erase(request);
      UnlinkRequest(ids, request);
      EXPECT_EQ(ids.Find(request)->listener, 0U);
      UnlinkRequest(ids, request);  // no longer in a list: nothing happens
      if (random() % 2 == 0) ids.Remove(request);
    }
    for (const auto& [handle, requests] : model) ASSERT_EQ(RequestsOf(ids, handle), requests);
  }
}

}  // namespace
}  // namespace rocegw::session
