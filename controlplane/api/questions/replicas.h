// SPDX-License-Identifier: Apache-2.0
// Other controllers of the fleet, as registered in the store: connections to them, and questions
// that each answers for the gateways connected to it. The caller was admitted here; the others are
// called under the controllers' own identity. Any thread; the follower outlives it.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/node_hub.h"

namespace rocegw::api {

class Replicas {
 public:
  using Deadline = std::chrono::system_clock::time_point;
  // Returns a connection to another controller, with this controller's certificate.
  using ChannelTo = std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>;

  // `self`: id of this controller. `channel_to`: may be empty; then there are no others.
  Replicas(const sync::FleetFollower& follower, std::string self, ChannelTo channel_to);
  // Cancels calls in progress and waits for them.
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  struct Replica {
    std::string id;
    std::string address;
  };
  // Returns the controller that has the gateway's streams, according to the store; an empty
  // address: this one, or unknown.
  Replica OwnerOf(const std::string& gateway) const;
  std::shared_ptr<grpc::Channel> Connection(const Replica& replica);

  // Sums the progress of the other controllers (connected, in_sync, unadopted, rejecting), each
  // after it has sent all changes up to `revision`. `silent`: number of controllers without an
  // answer by `deadline`, or within two seconds. Calls before it returns if there are no others.
  void AddProgress(store::Revision revision, Deadline deadline,
                   std::function<void(const sync::FleetProgress& others, uint32_t silent)> done);
  // Makes the other controllers' gateways follow this store, like NodeHub::Adopt. Passes their
  // number; with the same time limit.
  void Adopt(const std::string& gateway, Deadline deadline,
             std::function<void(uint32_t adopted, uint32_t silent)> done);

  // Ends all calls; no controller is asked afterwards.
  void Close();

 private:
  template <typename Request, typename Response, typename Sum>
  class Round;

  // Returns all other running controllers.
  std::vector<Replica> Others() const;
  // Returns false after Close.
  bool Begin(grpc::ClientContext& context);
  void Ended(grpc::ClientContext& context);

  const sync::FleetFollower& follower_;
  const std::string self_;
  const ChannelTo channel_to_;
  std::mutex mutex_;
  std::condition_variable ended_;
  struct Peer {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
  };
  std::map<std::string, Peer> peers_;  // by id
  std::set<grpc::ClientContext*> calls_;
  bool closed_ = false;
};

}  // namespace rocegw::api
