// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/place.h"

#include <string>

namespace rocegw::interop {

Place Tell(Session& session, const Place& mine) {
  const std::string theirs =
      session.control.Exchange(std::to_string(mine.address) + " " + std::to_string(mine.key));
  Place place{};
  const size_t space = theirs.find(' ');
  place.address = std::stoull(theirs.substr(0, space));
  place.key = static_cast<uint32_t>(std::stoul(theirs.substr(space + 1)));
  return place;
}

}  // namespace rocegw::interop
