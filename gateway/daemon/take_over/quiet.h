// SPDX-License-Identifier: Apache-2.0
// Rest of the running gateway while another process takes over: no attach, call or packet is
// accepted or answered, and all of them wait in sockets that both processes have. Slow requests are
// waited for before, while other programs are served; then requests in progress, attaches, and
// programs that end. A program that has an object that is not handed over prevents the rest.
// Control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "gateway/datapath/data_path.h"
#include "gateway/loop/control_loop.h"
#include "gateway/process/http/metrics_server.h"
#include "gateway/service/grpc_server.h"
#include "gateway/take_over/messages.h"
#include "gateway/take_over/step_times.h"

namespace rocegw::daemon {

class Quiet {
 public:
  struct Parts {
    ControlLoop& loop;
    datapath::DataPath& data_path;
    process::MetricsServer& metrics;
    service::GrpcServer& grpc;
    take_over::StepTimes& steps;
  };
  // Result: nothing, or the reason why the gateway cannot rest.
  using Done = std::function<void(std::optional<take_over::Refuse>)>;

  explicit Quiet(Parts parts) : parts_(parts) {}
  ~Quiet() { parts_.loop.Cancel(timer_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

  // `done` is called once, unless End comes first.
  void Begin(Done done);
  // Accepts everything again.
  void End();
  // Returns true between Begin and End: calls that change the gateway are refused.
  bool active() const { return active_; }
  // Time from which nothing is accepted.
  TimePoint since() const { return since_; }

 private:
  void Accept(bool accepts);
  void AwaitSlowRequests();
  void Look();
  void ParkWorkers();
  void UnparkWorkers();
  void AwaitWorkers();
  void Answer(std::optional<take_over::Refuse> refuse);
  std::optional<take_over::Refuse> Busy() const;

  const Parts parts_;
  bool active_ = false;
  bool workers_parked_ = false;
  bool ended_unsettled_ = false;
  TimePoint began_;
  TimePoint since_;
  TimePoint parked_at_;
  Done done_;
  uint64_t number_ = 0;  // number of the rest, so that answers for an earlier one are ignored
  ControlLoop::TimerId timer_ = 0;
};

}  // namespace rocegw::daemon
