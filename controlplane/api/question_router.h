// SPDX-License-Identifier: Apache-2.0
// Questions for gateways, wherever their agents' streams end: at this controller
// (sync/tunnel_hub.h) or at another one, which is asked in the caller's place, under the
// controllers' own identity and with the same deadline. The caller has been admitted here. A
// question is passed on once: who is asked knows the gateway or says so. Any thread; follower and
// tunnels outlive it.
#pragma once

#include <grpcpp/channel.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/tunnel_hub.h"

namespace rocegw::api {

class QuestionRouter {
 public:
  using Clock = sync::TunnelHub::Clock;
  using QuestionId = sync::TunnelHub::QuestionId;
  using Done = sync::TunnelHub::Done;
  using Part = sync::TunnelHub::Part;
  // A connection with this controller's certificate to another one.
  using ChannelTo = std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>;

  // self: id of this controller. channel_to: may be empty, then nothing is passed on.
  QuestionRouter(const sync::FleetFollower& follower, sync::TunnelHub& tunnels, std::string self,
                 ChannelTo channel_to);
  // Ends what is under way and waits for it.
  ~QuestionRouter();
  QuestionRouter(const QuestionRouter&) = delete;
  QuestionRouter& operator=(const QuestionRouter&) = delete;

  // As those of the tunnels.
  void Ask(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
           Clock::time_point deadline, Done done);
  QuestionId AskInParts(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
                        Clock::time_point deadline, uint32_t window, Part part, Done done);
  void Grant(QuestionId question, uint32_t parts);
  void Cancel(QuestionId question);

  // All that was passed on ends, and nothing is passed on any more.
  void Close();

 private:
  class Call;
  // Of a gateway whose streams end elsewhere: who has them; empty address: here, or nobody knows.
  struct Owner {
    std::string id;
    std::string address;
  };
  Owner OwnerOf(const std::string& gateway) const;
  // nullptr: closed.
  std::shared_ptr<Call> Begin(const Owner& owner, const std::string& gateway,
                              const fleet::v1::TunnelQuestion& question, Clock::time_point deadline,
                              uint32_t window, Part part, Done done);
  std::shared_ptr<Call> Find(QuestionId question);
  void Ended(QuestionId question);

  const sync::FleetFollower& follower_;
  sync::TunnelHub& tunnels_;
  const std::string self_;
  const ChannelTo channel_to_;
  std::mutex mutex_;
  std::condition_variable ended_;
  struct Peer {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
  };
  std::map<std::string, Peer> peers_;
  std::map<QuestionId, std::shared_ptr<Call>> calls_;
  QuestionId last_ = 0;
  bool closed_ = false;
};

}  // namespace rocegw::api
