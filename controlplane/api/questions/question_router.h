// SPDX-License-Identifier: Apache-2.0
// Questions for gateways, wherever their agents' streams end: at this controller
// (sync/tunnel_hub.h) or at another one, which is asked in the caller's place, under the
// controllers' own identity and with the same deadline. The caller has been admitted here. A
// question is passed on once: who is asked knows the gateway or says so. Any thread; tunnels and
// replicas outlive it.
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
  Replicas::Replica OwnerOf(const std::string& gateway) const;
  // nullptr: closed.
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
