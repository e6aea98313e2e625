// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/nodes/sent_progress.h"

#include <utility>

#include "controlplane/api/calls/api_error.h"

namespace rocegw::api {

void AwaitSent(sync::FleetFollower& follower, sync::NodeHub& hub, store::Revision revision,
               grpc::ServerUnaryReactor& reactor,
               std::function<void(const sync::FleetProgress&)> done) {
  follower.WhenNewest([&hub, &reactor, revision,
                       done = std::move(done)](const StatusOr<store::Revision>& newest) mutable {
    if (!newest.ok()) return reactor.Finish(ToStatus(FromStore(newest.status())));
    // Waiting for it would never end.
    if (revision > newest.value()) {
      return reactor.Finish(
          ToStatus(InvalidArgument({{"revision", "is one that the store has not reached"}})));
    }
    hub.WhenSent(revision, std::move(done));
  });
}

}  // namespace rocegw::api
