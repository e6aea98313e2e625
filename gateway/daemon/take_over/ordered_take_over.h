// SPDX-License-Identifier: Apache-2.0
// Take-over that this process starts itself, on SIGUSR2 or for a caller of the gRPC socket: starts
// the installed program and reports how its take-over ended. One at a time. Control thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/loop/control_loop.h"
#include "gateway/service/sources/take_over_source.h"
#include "gateway/take_over/messages.h"

namespace rocegw::daemon {

class OrderedTakeOver {
 public:
  using Done = std::function<void(const StatusOr<service::TakeOverOutcome>&)>;
  // Starts the process that takes over; returns its pidfd.
  using Spawn = std::function<StatusOr<UniqueFd>()>;

  // More than six refusals of a process that tries again, each with all its phases, take.
  static constexpr Duration kUsualLimit = Seconds(180);

  // `limit`: time after which the started process is killed if it has neither taken over nor ended;
  // this process goes on then.
  explicit OrderedTakeOver(ControlLoop& loop, Duration limit = kUsualLimit)
      : loop_(loop), limit_(limit) {}
  ~OrderedTakeOver() { Stop(); }
  OrderedTakeOver(const OrderedTakeOver&) = delete;
  OrderedTakeOver& operator=(const OrderedTakeOver&) = delete;

  // Without it, each take-over is refused.
  void SetSpawn(Spawn spawn) { spawn_ = std::move(spawn); }
  bool is_in_progress() const { return static_cast<bool>(done_); }
  // Starts a take-over; `done` is called once. Refused while another one is in progress.
  void Start(Done done);
  // A take-over was refused; the process that asked may try it again.
  void OnRefused(const take_over::Refuse& refuse);
  // This process has been replaced.
  void OnReplaced(Duration blackout, const session::Totals& handed_over);
  // Fails a take-over in progress, whose process goes on.
  void Stop();

 private:
  void OnProcessEnded();
  void OnDeadline();
  void Finish(const StatusOr<service::TakeOverOutcome>& outcome);

  ControlLoop& loop_;
  const Duration limit_;
  Spawn spawn_;
  Done done_;  // set: a take-over is in progress
  UniqueFd process_;
  ControlLoop::WatchId watch_ = 0;
  ControlLoop::TimerId ended_ = 0;
  ControlLoop::TimerId deadline_ = 0;
  std::string end_;                          // how the process ended
  std::optional<take_over::Refuse> refuse_;  // newest since the start
};

}  // namespace rocegw::daemon
