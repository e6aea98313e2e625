// SPDX-License-Identifier: Apache-2.0
// Requests that wait at listeners until their program fetches them. A request stays here when its
// peer withdraws it: its id and its events still wait for the program, so a peer that repeats and
// withdraws requests cannot make more of them than the backlog allows. Counts requests by source,
// so a packet for a full listener costs no walk. Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "gateway/base/containers/kept_nodes.h"
#include "gateway/cm/cm_id.h"

namespace rocegw::cm {

class Backlog {
 public:
  // Returns true if a request of the source may wait at the listener. A source alone has the whole
  // backlog. As many places again are left to other sources: of those that remain, a source has
  // half.
  bool HasPlace(const Id& listener, const wire::Gid& source) const;

  void Enter(Id& listener, Id& request);
  // Does nothing for an id that is not in the listener's backlog.
  void Leave(Id& listener, Id& request);
  static bool Contains(const Id& listener, const Id& request) {
    return request.of_listener.previous != nullptr || listener.first_request == &request;
  }

  // Keeps memory for so many further requests (kept_nodes.h).
  void Keep(size_t wanted) { kept_.SetWanted(wanted); }
  bool Refill(size_t most) { return kept_.Refill(of_source_, most); }

 private:
  using OfSource = std::map<std::pair<uint64_t, wire::Gid>, uint32_t>;

  OfSource of_source_;  // by the listener's handle and the source; no entry is 0
  KeptNodes<OfSource> kept_;
};

}  // namespace rocegw::cm
