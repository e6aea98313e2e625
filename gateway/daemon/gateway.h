// SPDX-License-Identifier: Apache-2.0
// Running gateway: all parts of a configuration, started in order, and the control loop of the
// calling thread. Start and all other calls belong to this control thread; RequestStop is called by
// its handlers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gateway/apply/engine.h"
#include "gateway/base/status.h"
#include "gateway/cipher/openssl_ciphers.h"
#include "gateway/daemon/config.h"
#include "gateway/daemon/config_target.h"
#include "gateway/daemon/diagnoses.h"
#include "gateway/daemon/key_file.h"
#include "gateway/daemon/sysfs_counters.h"
#include "gateway/daemon/sysfs_view.h"
#include "gateway/daemon/take_over/ordered_take_over.h"
#include "gateway/daemon/take_over/quiet.h"
#include "gateway/daemon/take_over/take_over_server.h"
#include "gateway/datapath/data_path.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/loop/control_loop.h"
#include "gateway/process/http/metrics_server.h"
#include "gateway/process/lifecycle.h"
#include "gateway/process/runtime_dir.h"
#include "gateway/process/watchdog.h"
#include "gateway/service/gateway_metrics.h"
#include "gateway/service/grpc_server.h"
#include "gateway/service/identity.h"
#include "gateway/service/sources/state_source.h"
#include "gateway/service/sources/take_over_source.h"
#include "gateway/session/session_server.h"
#include "gateway/take_over/history.h"
#include "gateway/take_over/step_times.h"

namespace rocegw::daemon {

class Gateway final : private service::StateSource,
                      private service::ConfigSource,
                      private service::AttachSource,
                      private service::CaptureSource,
                      private service::DiagnosisSource,
                      private service::TakeOverSource,
                      private TakeOverHost {
 public:
  // Descriptors of the process that this one replaces, and the state of it that does not change.
  struct Predecessor {
    InheritedFds& fds;
    std::span<const uint8_t> foundation;
  };
  // `descriptors`: receives the descriptors that programs pass. `predecessor`: what it refers to
  // outlives this object; nothing: the process replaces none.
  Gateway(Config config, std::shared_ptr<session::DescriptorReceiver> descriptors,
          std::optional<Predecessor> predecessor);
  ~Gateway() override { Stop(); }

  // Returns what must be the same in a process that replaces this gateway, a line each.
  static std::vector<std::string> ShapeOf(const Config& config);

  // Starts all parts or none: the error names the part and the remedy. With inherited descriptors
  // the parts do not act yet: nothing is accepted, received or sent before Act. After an error the
  // process must then exit without running destructors.
  Status Start();
  // Reads the state of the process that this one replaces, which rests. `began`: when the state
  // began to arrive.
  Status Build(std::span<const uint8_t> state, TimePoint began);
  // Does all that can fail on the way to the gateway in the place of another process, which can
  // still go on. Returns the pause of the service. Then LetWorkersAct makes this process the
  // gateway: what its workers send and receive, no other process can take back.
  StatusOr<Duration> Act(const std::string& predecessor_version, size_t descriptors);
  void LetWorkersAct();
  // Process that is the gateway now instead of this one; 0: none. Run has returned then.
  pid_t successor() const { return successor_; }
  // Ends calls in progress and leaves everything that the successor has in place. The process must
  // exit without running destructors.
  void LeaveToSuccessor();

  // Runs the loop until RequestStop.
  void Run();
  void RequestStop() { stop_requested_ = true; }
  // Sets how the process is started that takes over.
  void SetSpawn(OrderedTakeOver::Spawn spawn) { ordered_take_over_.SetSpawn(std::move(spawn)); }
  // Starts a process that takes over; the log says how it ended.
  void OrderTakeOver();
  // Ends calls, then sessions, then workers. Returns false if sessions did not end in time: the
  // process must exit.
  bool Stop();

  // Reads the key file again; does nothing without one. An error keeps the current keys, and is
  // logged.
  void ReloadKeys();

  ControlLoop& loop() { return loop_; }
  // Returns problems of the configuration's static objects, "FILE:LINE: text".
  static std::vector<std::string> CheckStatic(const Config& config, const std::string& file);
  // Returns the stuck thread; empty: none. Any thread.
  std::string Stuck() const { return watchdog_.Stuck(); }
  // Returns one line for display: ports, addresses, workers.
  std::string Summary() const;

 private:
  session::SessionServer* sessions() const { return data_path_.sessions(); }
  Status StartLoop();
  Status StartRuntimeDir();
  Status StartSysfs();
  void UpdateSysfs(const session::Device& device);
  Status StartSessions();
  Status StartKeys();
  // Looks at the key file now and then, since it may be replaced.
  void WatchKeysLater();
  Status StartConfiguration();
  // Schedules another attempt to apply rejected objects: soon, then at growing intervals, while
  // there are any.
  void RetryConfiguration();
  void RetryConfigurationLater();
  void StartWatchdog();
  Status StartMetrics();
  Status StartGrpc();
  Status StartTakeOvers();
  session::TakeOverRow TakeOvers() const;
  // Reads and links the sessions that the predecessor wrote ahead.
  Status ReadUnchanged();
  // Returns true while another process may take the place of this one: what it was told of the
  // configuration must stay true.
  bool IsBeingReplaced() const { return quiet_.active() || take_over_server_.is_in_progress(); }
  // Logs the programs that the stop cuts off, for orchestrators that show no output of their drain.
  // The work runs on another thread, since it waits for answers of this thread's loop.
  void ReportHolders();
  void WhileLooping(const std::function<void()>& work);

  // service::StateSource
  void Snapshot(const session::StateQuery& query,
                std::function<void(session::StateSnapshot)> done) override;
  // service::ConfigSource
  void Apply(const types::v1::Push& push,
             std::function<void(bool, types::v1::PushReport)> done) override;
  void Drain(bool drain, std::function<void(bool, session::DrainRow)> done) override;
  void Describe(std::function<void(bool, rocegw::gateway::v1::GetConfigResponse)> done) override;
  // service::CaptureSource
  void StartCapture(const session::CaptureOrder& order, std::shared_ptr<port::CaptureSink> sink,
                    std::function<void(const Status&)> started) override;
  void AbortCapture(std::shared_ptr<port::CaptureSink> sink) override;
  // service::DiagnosisSource
  void Diagnose(std::function<void(const rocegw::gateway::v1::DiagnoseResponse&)> done) override;

  // service::TakeOverSource
  void TakeOver(uint64_t take_overs, OrderedTakeOver::Done done) override;

  // TakeOverHost
  std::optional<take_over::Refuse> Judge(const take_over::Hello& hello) override;
  OfferedFds OfferFds() override;
  OfferedFds OfferSessionFds() override;
  void Quieten(std::function<void(std::optional<take_over::Refuse>)> done) override {
    quiet_.Begin(std::move(done));
  }
  void Resume() override;
  void LookAtSessions(const hand_over::StateVersions& reader) override;
  StatusOr<std::vector<uint8_t>> WriteUnchanged(const hand_over::StateVersions& reader) override;
  StatusOr<std::vector<uint8_t>> WriteFoundation(const hand_over::StateVersions& reader) override;
  StatusOr<std::vector<uint8_t>> WriteState(const hand_over::StateVersions& reader) override;
  void OnRefused(take_over::Refusal refusal, const std::string& text) override;
  void Leave(pid_t successor, Duration blackout) override;

  // service::AttachSource
  void ListHeld(uint64_t after, Duration wait,
                std::function<void(std::vector<session::HeldRow>)> done) override;
  void ClearSocket(const std::string& path, bool expect_program,
                   std::function<void(uint32_t)> done) override;
  void AnswerHeld(uint64_t id, bool allowed, const std::string& reason,
                  const tenant::SlotLimits& limits, std::function<void(bool)> done) override;

  const Config config_;
  InheritedFds* const inherited_;
  std::optional<hand_over::StateStream> foundation_;  // state of the predecessor
  service::GatewayIdentity identity_;
  service::Readiness readiness_;
  ControlLoop loop_;
  bool stop_requested_ = false;
  bool sessions_ended_ = true;

  process::RuntimeDir runtime_dir_{"runtime_dir", "rocegwd"};
  SysfsView sysfs_;
  const cipher::OpensslCiphers ciphers_;
  datapath::DataPath data_path_;
  SysfsCounters sysfs_counters_;
  std::optional<ConfigTarget> target_;
  std::optional<apply::Engine> engine_;
  bool retries_ = false;
  KeyFileWatch key_file_watch_;
  Duration retry_after_;
  Diagnoses diagnoses_;
  service::GatewayMetrics metrics_;
  process::Watchdog watchdog_;
  process::MetricsServer metrics_server_;
  service::GrpcServer grpc_server_;
  take_over::StepTimes take_over_steps_;
  std::vector<uint8_t> state_space_;  // memory for the state of a take-over
  Quiet quiet_;
  TakeOverServer take_over_server_;
  OrderedTakeOver ordered_take_over_{loop_};
  ControlLoop::TimerId order_again_ = 0;
  take_over::History take_overs_;
  TimePoint predecessor_quiet_;  // when the predecessor began to rest
  pid_t successor_ = 0;
  process::Lifecycle lifecycle_;
};

}  // namespace rocegw::daemon
