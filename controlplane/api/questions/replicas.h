// SPDX-License-Identifier: Apache-2.0
// The other controllers of the fleet, as the store knows them: connections to them, and questions
// that each answers for the gateways whose agents' streams end there. Who asks has admitted his own
// caller; the others are called under the controllers' own identity. Any thread; the follower
// outlives it.
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
  // A connection with this controller's certificate to another one.
  using ChannelTo = std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>;

  // self: id of this controller. channel_to: may be empty, then there are no others.
  Replicas(const sync::FleetFollower& follower, std::string self, ChannelTo channel_to);
  // Ends what is under way and waits for it.
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  struct Replica {
    std::string id;
    std::string address;
  };
  // Who has the gateway's streams, as the store says; empty address: this one, or nobody.
  Replica OwnerOf(const std::string& gateway) const;
  std::shared_ptr<grpc::Channel> Connection(const Replica& replica);

  // The sums of what the others say (connected, in_sync, unadopted, rejecting), each once it has
  // handed out all changes up to `revision`; `silent`: so many have not answered by `deadline`, or
  // within two seconds. Calls before it returns where there are no others.
  void AddProgress(store::Revision revision, Deadline deadline,
                   std::function<void(const sync::FleetProgress& others, uint32_t silent)> done);
  // Makes the others' gateways follow this store, as NodeHub::Adopt. How many did; in the same
  // time.
  void Adopt(const std::string& gateway, Deadline deadline,
             std::function<void(uint32_t adopted, uint32_t silent)> done);

  // All that is under way ends, and nobody is asked any more.
  void Close();

 private:
  template <typename Request, typename Response, typename Sum>
  class Round;

  // All others that are there.
  std::vector<Replica> Others() const;
  // False: closed.
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
