// SPDX-License-Identifier: Apache-2.0
// Routing of questions to gateways whose agents are connected to any controller: to this one
// (sync/tunnel_hub.h), or to another one, which is asked on the caller's behalf under the
// controllers' own identity and with the same deadline. The caller was admitted here. A question is
// forwarded once: the other controller has the gateway or reports that it has not. Any thread;
// tunnels and replicas outlive it.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "controlplane/api/questions/replicas.h"
#include "controlplane/sync/tunnel_hub.h"

namespace rocegw::api {

class QuestionRouter {
 public:
  using Clock = sync::TunnelHub::Clock;
  using QuestionId = sync::TunnelHub::QuestionId;
  using Done = sync::TunnelHub::Done;
  using Part = sync::TunnelHub::Part;

  QuestionRouter(sync::TunnelHub& tunnels, Replicas& replicas)
      : tunnels_(tunnels), replicas_(replicas) {}
  // Cancels calls in progress and waits for them.
  ~QuestionRouter();
  QuestionRouter(const QuestionRouter&) = delete;
  QuestionRouter& operator=(const QuestionRouter&) = delete;

  // See TunnelHub.
  void Ask(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
           Clock::time_point deadline, Done done);
  QuestionId AskInParts(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
                        Clock::time_point deadline, uint32_t window, Part part, Done done);
  void Grant(QuestionId question, uint32_t parts);
  void Cancel(QuestionId question);

  // Ends all forwarded questions; none is forwarded afterwards.
  void Close();

 private:
  class Call;
  // Returns the controller that has the gateway's streams; an empty address: this one, or unknown.
  Replicas::Replica OwnerOf(const std::string& gateway) const;
  // Returns nullptr after Close.
  std::shared_ptr<Call> Begin(const Replicas::Replica& owner, const std::string& gateway,
                              const fleet::v1::TunnelQuestion& question, Clock::time_point deadline,
                              uint32_t window, Part part, Done done);
  std::shared_ptr<Call> Find(QuestionId question);
  void Ended(QuestionId question);

  sync::TunnelHub& tunnels_;
  Replicas& replicas_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::map<QuestionId, std::shared_ptr<Call>> calls_;
  QuestionId last_ = 0;
  bool closed_ = false;
};

}  // namespace rocegw::api
