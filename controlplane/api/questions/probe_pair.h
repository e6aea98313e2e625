// SPDX-License-Identifier: Apache-2.0
// Pair of probes: makes the agent of one gateway start a probe that waits, and when that has
// reported its address, the agent of the other gateway a probe that connects to it. A failed
// connection is a result. gRPC's threads; the router outlives it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "controlplane/api/questions/question_router.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::api {

class ProbePair : public std::enable_shared_from_this<ProbePair> {
 public:
  using Clock = QuestionRouter::Clock;
  // Called once, on any thread, unless the pair was cancelled.
  using Done = std::function<void(const admin::v1::TestConnectivityResponse& result)>;

  // `request`: with a pool. `done` may hold the caller: it is dropped when it was called.
  static std::shared_ptr<ProbePair> Start(QuestionRouter& router,
                                          admin::v1::TestConnectivityRequest request,
                                          Clock::time_point deadline, Done done);
  // Ends both probes. Done is not called afterwards, but may run meanwhile.
  void Cancel();

 private:
  struct Half {
    QuestionRouter::QuestionId id = 0;
    bool told = false;  // the probe has reported
  };
  using OnReport = void (ProbePair::*)(const fleet::v1::ProbeReport& report);

  ProbePair(QuestionRouter& router, admin::v1::TestConnectivityRequest request,
            Clock::time_point deadline, Done done);
  std::chrono::milliseconds Left() const;
  void Ask(Half& end, const std::string& gateway, fleet::v1::TunnelQuestion& question,
           std::chrono::milliseconds limit, OnReport on_report);
  void OnPart(Half& end, const fleet::v1::TunnelAnswer& answer, OnReport on_report);
  void OnQuestionEnd(const Half& end, const std::string& gateway, const sync::TunnelResult& result);
  void OnWaiting(const fleet::v1::ProbeReport& report);
  void OnConnecting(const fleet::v1::ProbeReport& report);
  void Fail(const std::string& at, types::v1::ConnectivityFault fault, const std::string& message);
  // Cancels what still runs; returns false if the pair has ended before.
  bool Close(Done* done);
  void Finish();

  QuestionRouter& router_;
  const admin::v1::TestConnectivityRequest request_;
  const Clock::time_point deadline_;
  std::mutex mutex_;
  Done done_;
  admin::v1::TestConnectivityResponse result_;
  Half waiting_;
  Half connecting_;
  bool over_ = false;
};

// Returns the remedy of a fault. `here`: gateway that reports the fault, `there`: the other one,
// both names without "gateways/".
std::string RemedyOf(types::v1::ConnectivityFault fault, const std::string& here,
                     const std::string& there);

}  // namespace rocegw::api
