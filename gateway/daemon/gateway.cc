// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/gateway.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <thread>
#include <utility>
#include <vector>

#include "gateway/apply/static_config.h"
#include "gateway/daemon/copy_engine/copies.h"
#include "gateway/daemon/dpdk_backend.h"
#include "gateway/daemon/gateway_facts.h"
#include "gateway/daemon/key_file.h"
#include "gateway/process/build_info.h"

namespace rocegw::daemon {
namespace {

using process::Compiler;
using process::FindOwner;
using process::Revision;
using process::Version;

// Longest interval between heartbeats of the control thread.
constexpr Duration kLoopRound = Seconds(1);
constexpr Duration kLookAtKeysEvery = Seconds(2);
constexpr Duration kFirstRetry = Seconds(1);
constexpr Duration kLastRetry = Seconds(30);
// Sessions end when the workers have released their objects, which takes microseconds.
constexpr Duration kSessionsEndWithin = Seconds(10);
// Longest wait of an examination for the workers' data.
constexpr Duration kWorkersAnswerWithin = Seconds(2);

// Returns the host name's first label as a DNS label.
std::string HostLabel() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string label;
  for (const char* c = host; *c != '\0' && *c != '.' && label.size() < 63; ++c) {
    const auto letter = static_cast<unsigned char>(*c);
    label += std::isalnum(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '-';
  }
  const size_t first = label.find_first_not_of('-');
  if (first == std::string::npos) return "gateway";
  return label.substr(first, label.find_last_not_of('-') - first + 1);
}

service::GatewayIdentity MakeIdentity(const Config& config) {
  return {config.name.empty() ? HostLabel() : config.name,
          Version(),
          Revision(),
          Compiler(),
          session::WallClockNs(),
          session::WallClockNs};
}

// Returns the directory of the slots' sockets, below the runtime directory.
std::string SlotsDir(const Config& config) { return config.runtime_dir + "/a"; }

apply::StaticResult StaticObjects(const Config& config) {
  std::vector<apply::StaticEntry> entries;
  for (const StaticObject& object : config.static_objects)
    entries.push_back({object.kind, object.json, object.line});
  const std::string name = config.name.empty() ? HostLabel() : config.name;
  return apply::ReadStatic(entries, "gateways/" + name);
}

session::Options SessionOptions(const Config& config, const std::string& sysfs_root) {
  session::Options options;
  options.version = Version();
  options.sysfs_root = sysfs_root;
  options.slots_dir = SlotsDir(config);
  return options;
}

void LogSessionLine(session::Severity severity, const std::string& line) {
  switch (severity) {
    case session::Severity::kDebug:
      spdlog::debug(line);
      break;
    case session::Severity::kInfo:
      spdlog::info(line);
      break;
    case session::Severity::kWarning:
      spdlog::warn(line);
      break;
  }
}

// Returns the environment that all users of DPDK in this process share: the first one starts it.
port::DpdkEnvironment EnvironmentOf(const Config& config) {
  const bool pci = std::ranges::any_of(
      config.ports, [](const auto& one) { return one.mode == datapath::PortMode::kPci; });
  return {.huge_pages = config.dpdk.huge_pages,
          .memory_mb = config.dpdk.memory_mb,
          .pci = pci,
          .arguments = config.dpdk.eal_args};
}

}  // namespace

Gateway::Gateway(Config config, std::shared_ptr<session::DescriptorReceiver> descriptors,
                 std::optional<Predecessor> predecessor)
    : config_(std::move(config)),
      inherited_(predecessor ? &predecessor->fds : nullptr),
      identity_(MakeIdentity(config_)),
      sysfs_(config_.runtime_dir + "/sysfs"),
      data_path_(config_, loop_,
                 {LogSessionLine,
                  [this](const PortConfig& port, size_t interface_mtu,
                         const port::SteeringTable& steering) {
                    return OpenDpdk(port, EnvironmentOf(config_), interface_mtu, steering);
                  },
                  [this](const session::Device& device) { UpdateSysfs(device); }, inherited_,
                  [this](const std::vector<std::string>& devices, size_t workers) {
                    return OpenCopyEngine(EnvironmentOf(config_), devices, workers);
                  },
                  std::move(descriptors)}),
      sysfs_counters_(
          loop_, sysfs_.root(),
          [this](size_t device) { return data_path_.ports().TrafficOf(device); },
          [this] { return sessions() != nullptr && sessions()->session_count() > 0; }),
      metrics_(identity_, readiness_, *this),
      metrics_server_(metrics_, readiness_, &watchdog_),
      grpc_server_(identity_, readiness_, *this, this, this, this, this, this),
      quiet_({loop_, data_path_, metrics_server_, grpc_server_, take_over_steps_}),
      take_over_server_(loop_, *this, identity_.version, take_over_steps_) {
  if (predecessor) foundation_.emplace(predecessor->foundation, ControlLoop::Now());
  metrics_server_.SetAccepting(inherited_ == nullptr);
  grpc_server_.SetAccepting(inherited_ == nullptr);
  take_over_steps_.Begin(ControlLoop::Now());
  lifecycle_.on_start = [](const std::string& part) { spdlog::debug("start: {}", part); };
  lifecycle_.on_started = [this](const std::string& part) {
    take_over_steps_.End(part, ControlLoop::Now());
  };
  lifecycle_.on_stop = [](const std::string& part) { spdlog::debug("stop: {}", part); };
  lifecycle_.Add(
      "control loop", [this] { return StartLoop(); }, [] {});
  lifecycle_.Add(
      "runtime directory", [this] { return StartRuntimeDir(); },
      [this] { runtime_dir_.Release(); });
  lifecycle_.Add(
      "ports", [this] { return data_path_.StartPorts(); }, [this] { data_path_.StopPorts(); });
  lifecycle_.Add(
      "workers",
      [this] { return inherited_ ? data_path_.BuildWorkers() : data_path_.StartWorkers(); },
      [this] { data_path_.StopWorkers(); });
  lifecycle_.Add(
      "watchdog",
      [this] {
        if (inherited_ == nullptr) StartWatchdog();
        return OkStatus();
      },
      [this] { watchdog_.Stop(); });
  lifecycle_.Add(
      "sysfs view", [this] { return inherited_ == nullptr ? StartSysfs() : OkStatus(); },
      [this] {
        sysfs_counters_.Stop();
        sysfs_.Remove();
      });
  lifecycle_.Add(
      "sessions", [this] { return StartSessions(); },
      [this] { sessions_ended_ = data_path_.StopSessions(kSessionsEndWithin); });
  lifecycle_.Add(
      "configuration", [this] { return StartConfiguration(); },
      [this] {
        engine_.reset();
        target_.reset();
      });
  lifecycle_.Add(
      "programs", [this] { return ReadUnchanged(); }, [] {});
  lifecycle_.Add(
      "metrics", [this] { return StartMetrics(); },
      [this] { WhileLooping([this] { metrics_server_.Stop(); }); });
  // Last part: when gRPC answers, everything runs.
  lifecycle_.Add(
      "gRPC", [this] { return StartGrpc(); },
      [this] {
        // Ends calls that wait for programs to attach.
        sessions()->gate().StopTelling();
        WhileLooping([this] { grpc_server_.Stop(); });
      });
  lifecycle_.Add(
      "take-overs", [this] { return inherited_ == nullptr ? StartTakeOvers() : OkStatus(); },
      [this] { take_over_server_.Stop(); });
}

Status Gateway::Start() {
  Status status = inherited_ == nullptr ? lifecycle_.Start() : lifecycle_.StartOnly();
  if (!status.ok() || inherited_ != nullptr) return status;
  readiness_.SetReady();
  grpc_server_.SetServing(true);
  if (config_.default_pool.trusted) {
    spdlog::info(
        "default pool: trusted, so a program that attaches through {} can stop a worker by making "
        "its memory wait; with programs that do not trust each other, set default_pool.trusted: "
        "false",
        config_.attach_socket.path);
  }
  return OkStatus();
}

Status Gateway::StartRuntimeDir() {
  UniqueFd lock;
  if (inherited_ != nullptr) lock = inherited_->Take(FdKind::kRuntimeLock, config_.runtime_dir);
  return lock.valid() ? runtime_dir_.Inherit(config_.runtime_dir, std::move(lock))
                      : runtime_dir_.Claim(config_.runtime_dir);
}

Status Gateway::StartLoop() {
  Status status = loop_.Open();
  if (!status.ok()) return {status.error(), "control loop: " + status.text()};
  return status;
}

void Gateway::StartWatchdog() {
  watchdog_.Watch("the control thread", loop_.heartbeat());
  size_t index = 0;
  for (const Heartbeat* const heartbeat : data_path_.worker_heartbeats())
    watchdog_.Watch("worker " + std::to_string(index++), *heartbeat);
  watchdog_.Start();
}

Status Gateway::StartSysfs() {
  Status status = inherited_ == nullptr ? sysfs_.Create(data_path_.Devices(), Version())
                                        : sysfs_.Renew(data_path_.Devices(), Version());
  if (!status.ok()) return status;
  std::vector<std::string> names;
  for (const session::Device& device : data_path_.Devices()) names.push_back(device.name);
  return sysfs_counters_.Start(names);
}

void Gateway::UpdateSysfs(const session::Device& device) {
  if (Status status = sysfs_.Update(device); !status.ok())
    spdlog::warn("sysfs view: {}", status.text());
}

Status Gateway::StartSessions() {
  const auto owner = FindOwner(config_.attach_socket.owner);
  if (!owner.ok()) return {owner.status().error(), "attach_socket." + owner.status().text()};
  if (foundation_) data_path_.HandOverGids(*foundation_);
  session::Options options = SessionOptions(config_, sysfs_.root());
  options.awaits_state = inherited_ != nullptr;
  data_path_.StartSessions(std::move(options));
  sessions()->attach().Inherit(inherited_);
  sessions()->attach().SetAccepting(inherited_ == nullptr);
  sessions()->attach().SetWatching(inherited_ == nullptr);
  if (foundation_) {
    if (foundation_->ok()) sessions()->HandOverFoundation(*foundation_);
    if (!foundation_->ok()) return {EPROTO, std::string("state: ") + foundation_->failure()};
  }
  Status status = sessions()->Listen({config_.attach_socket.path, config_.attach_socket.mode,
                                      owner.value().uid, owner.value().gid});
  if (status.ok()) status = StartKeys();
  if (!status.ok() && inherited_ == nullptr) (void)data_path_.StopSessions(kSessionsEndWithin);
  return status;
}

// Without keys only the policy holds.
Status Gateway::StartKeys() {
  FleetKeys keys;
  if (!config_.gateways.key_file.empty()) {
    (void)key_file_watch_.HasChanged(config_.gateways.key_file);
    auto read = ReadKeyFile(config_.gateways.key_file);
    if (!read.ok()) {
      // A fault of the file stays until the file changes; what this process lacks may
      // come back.
      const int error = read.status().error();
      if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO)
        key_file_watch_.Forget();
      return read.status();
    }
    keys = *read;
  }
  keys.policy = config_.gateways.authentication;
  keys.protection = config_.gateways.protection;
  keys.ciphers = &ciphers_;
  sessions()->SetKeys(keys);
  return OkStatus();
}

void Gateway::ReloadKeys() {
  if (config_.gateways.key_file.empty()) return;
  if (const Status keys = StartKeys(); !keys.ok())
    spdlog::warn("{}; the keys stay as they were", keys.text());
}

void Gateway::WatchKeysLater() {
  if (config_.gateways.key_file.empty()) return;
  loop_.At(ControlLoop::Now() + kLookAtKeysEvery, [this] {
    if (!IsBeingReplaced() && key_file_watch_.HasChanged(config_.gateways.key_file)) {
      spdlog::info("{} has changed: its keys are read", config_.gateways.key_file);
      ReloadKeys();
    }
    WatchKeysLater();
  });
}

std::vector<std::string> Gateway::CheckStatic(const Config& config, const std::string& file) {
  std::vector<std::string> problems = StaticObjects(config).problems;
  for (std::string& problem : problems) problem.insert(0, file + ":");
  return problems;
}

Status Gateway::StartConfiguration() {
  target_.emplace(*sessions(), SlotsDir(config_));
  engine_.emplace(
      apply::Facts{"gateways/" + identity_.name, sessions()->services().pools.capacity(),
                   config_.runtime_dir + "/config.state"},
      *target_, session::WallClockNs);
  const Status started = engine_->Start(StaticObjects(config_).objects);
  if (!started.ok()) spdlog::warn("{}; the static configuration is used", started.text());
  if (inherited_ == nullptr) sessions()->RemoveLeftoverSlots();
  rocegw::gateway::v1::GetConfigResponse config;
  engine_->Describe(config);
  for (const types::v1::Rejection& rejection : config.rejections()) {
    spdlog::warn("configuration: {} is not applied: {}: {}", rejection.object(), rejection.reason(),
                 rejection.message());
  }
  RetryConfiguration();
  return OkStatus();
}

void Gateway::RetryConfiguration() {
  retry_after_ = kFirstRetry;
  RetryConfigurationLater();
}

void Gateway::RetryConfigurationLater() {
  if (retries_ || !engine_ || !engine_->has_waiting()) return;
  retries_ = true;
  loop_.At(ControlLoop::Now() + retry_after_, [this] {
    retries_ = false;
    retry_after_ = std::min(retry_after_ * 2, kLastRetry);
    if (!engine_) return;
    if (IsBeingReplaced()) return RetryConfigurationLater();
    if (const size_t done = engine_->Retry(); done != 0)
      spdlog::info("configuration: {} pools that waited for their sockets have them", done);
    RetryConfigurationLater();
  });
}

Status Gateway::StartMetrics() {
  return config_.metrics_address.empty()
             ? OkStatus()
             : metrics_server_.Start(config_.metrics_address, inherited_);
}

Status Gateway::StartGrpc() {
  const auto owner = FindOwner(config_.grpc_socket.owner);
  if (!owner.ok()) return {owner.status().error(), "grpc_socket." + owner.status().text()};
  return grpc_server_.Start(
      {config_.grpc_socket.path, config_.grpc_socket.mode, owner.value().uid, owner.value().gid},
      inherited_);
}

void Gateway::Run() {
  WatchKeysLater();
  // A stop right behind COMMIT waits: what this process would remove may be the successor's.
  while (!stop_requested_ || take_over_server_.is_decided()) loop_.RunOnce(kLoopRound);
}

void Gateway::ReportHolders() {
  if (sessions() == nullptr) return;
  const session::DrainRow left = sessions()->Holders();
  if (left.sessions == 0) return;
  std::string text;
  for (const std::string& holder : left.holders) text += "; " + holder;
  spdlog::warn("disconnects {} sessions with {} queue pairs{}", left.sessions, left.qps, text);
}

bool Gateway::Stop() {
  readiness_.SetNotReady("stopping");
  ReportHolders();
  // A call without an answer would hold the server.
  ordered_take_over_.Stop();
  grpc_server_.SetServing(false);
  lifecycle_.Stop();
  return sessions_ended_;
}

void Gateway::WhileLooping(const std::function<void()>& work) {
  std::atomic<bool> done{false};
  std::thread thread([&] {
    work();
    done.store(true);
    loop_.Post([] {});
  });
  while (!done.load()) loop_.RunOnce(Seconds(1));
  thread.join();
}

void Gateway::Snapshot(const session::StateQuery& query,
                       std::function<void(session::StateSnapshot)> done) {
  sessions()->Snapshot(query, [this, done = std::move(done)](session::StateSnapshot snapshot) {
    data_path_.AddRows(snapshot);
    // Programs of the default pool attach without a slot.
    for (session::PoolRow& pool : snapshot.pools) {
      if (pool.name == session::kDefaultPool)
        pool.sockets.insert(pool.sockets.begin(), config_.attach_socket.path);
    }
    snapshot.take_overs = TakeOvers();
    if (engine_) {
      snapshot.config_source = engine_->source();
      snapshot.applied_revision = engine_->revision();
      snapshot.capacity = sessions()->services().pools.capacity();
    }
    done(std::move(snapshot));
  });
}

void Gateway::Apply(const types::v1::Push& push,
                    std::function<void(bool, types::v1::PushReport)> done) {
  // Shared, so that it can be called here if the loop does not take the task.
  auto shared = std::make_shared<std::function<void(bool, types::v1::PushReport)>>(std::move(done));
  const bool posted = loop_.Post([this, push, shared] {
    if (!engine_ || IsBeingReplaced()) return (*shared)(false, {});
    types::v1::PushReport report = engine_->Apply(push);
    spdlog::info("configuration: push {} of store {}: {}, now at revision {}, {} rejected",
                 push.revision(), push.store_uuid(), types::v1::PushStatus_Name(report.status()),
                 report.applied_revision(), report.rejections_size());
    if (!engine_->write_problem().empty()) spdlog::warn(engine_->write_problem());
    RetryConfiguration();
    (*shared)(true, std::move(report));
  });
  if (!posted) (*shared)(false, {});
}

void Gateway::Drain(bool drain, std::function<void(bool, session::DrainRow)> done) {
  auto shared = std::make_shared<std::function<void(bool, session::DrainRow)>>(std::move(done));
  const bool posted = loop_.Post([this, drain, shared] {
    if (!engine_ || quiet_.active()) return (*shared)(false, {});
    spdlog::info("drain: {}", drain ? "asked for here" : "taken back here");
    sessions()->OrderDrainLocally(drain);
    sessions()->Snapshot({.outstanding = true}, [shared](const session::StateSnapshot& snapshot) {
      (*shared)(true, snapshot.drain);
    });
  });
  if (!posted) (*shared)(false, {});
}

void Gateway::Describe(std::function<void(bool, rocegw::gateway::v1::GetConfigResponse)> done) {
  auto shared = std::make_shared<std::function<void(bool, rocegw::gateway::v1::GetConfigResponse)>>(
      std::move(done));
  const bool posted = loop_.Post([this, shared] {
    rocegw::gateway::v1::GetConfigResponse config;
    if (engine_) engine_->Describe(config);
    (*shared)(engine_.has_value(), std::move(config));
  });
  if (!posted) (*shared)(false, {});
}

void Gateway::ListHeld(uint64_t after, Duration wait,
                       std::function<void(std::vector<session::HeldRow>)> done) {
  auto shared =
      std::make_shared<std::function<void(std::vector<session::HeldRow>)>>(std::move(done));
  const bool posted = loop_.Post([this, after, wait, shared] {
    if (sessions() == nullptr) return (*shared)({});
    sessions()->gate().List(after, wait, *shared);
  });
  if (!posted) (*shared)({});
}

void Gateway::AnswerHeld(uint64_t id, bool allowed, const std::string& reason,
                         const tenant::SlotLimits& limits, std::function<void(bool)> done) {
  auto shared = std::make_shared<std::function<void(bool)>>(std::move(done));
  const bool posted = loop_.Post([this, id, allowed, reason, limits, shared] {
    (*shared)(sessions() != nullptr && sessions()->gate().Answer(id, allowed, reason, limits));
  });
  if (!posted) (*shared)(false);
}

void Gateway::ClearSocket(const std::string& path, bool expect_program,
                          std::function<void(uint32_t)> done) {
  auto shared = std::make_shared<std::function<void(uint32_t)>>(std::move(done));
  const bool posted = loop_.Post([this, path, expect_program, shared] {
    (*shared)(sessions() == nullptr ? 0 : sessions()->ClearSocket(path, expect_program));
  });
  if (!posted) (*shared)(0);
}

void Gateway::StartCapture(const session::CaptureOrder& order,
                           std::shared_ptr<port::CaptureSink> sink,
                           std::function<void(const Status&)> started) {
  const Status stopping(ESHUTDOWN, "the gateway is stopping");
  const bool posted = loop_.Post([this, order, sink = std::move(sink), started, stopping] {
    if (sessions() == nullptr) return started(stopping);
    session::CaptureOrder named = order;
    named.bounds.interfaces = data_path_.ports().QueueNames();
    sessions()->captures().Start(named, sink, started);
  });
  if (!posted) started(stopping);
}

void Gateway::AbortCapture(std::shared_ptr<port::CaptureSink> sink) {
  (void)loop_.Post([this, sink = std::move(sink)] {
    if (sessions() != nullptr) sessions()->captures().Abort(sink);
  });
}

void Gateway::Diagnose(std::function<void(const rocegw::gateway::v1::DiagnoseResponse&)> done) {
  // A hanging worker is itself a finding and not waited for. The first answer counts.
  auto waiting = std::make_shared<decltype(done)>(std::move(done));
  const auto examine = [this, waiting](const session::StateSnapshot& snapshot) {
    auto asked = std::exchange(*waiting, nullptr);
    if (asked) diagnoses_.Ask(FactsOf(config_, identity_, snapshot), std::move(asked));
  };
  Snapshot({.sessions = true, .qps = true, .pools = true}, examine);
  (void)loop_.Post([this, waiting, examine] {
    loop_.At(ControlLoop::Now() + kWorkersAnswerWithin, [this, waiting, examine] {
      if (*waiting) Snapshot({.sessions = true, .pools = true}, examine);
    });
  });
}

std::string Gateway::Summary() const {
  std::string text = std::to_string(data_path_.steering().worker_count()) + " workers";
  session::StateSnapshot snapshot;
  data_path_.ports().AddRows(snapshot);
  for (const session::PortRow& row : snapshot.ports) {
    text += "; " + row.device + ": " + row.mode + " on " +
            (row.interface.empty() ? "its own device" : row.interface) + ", path MTU " +
            std::to_string(row.path_mtu);
    if (!row.note.empty()) text += " (" + row.note + ")";
  }
  return text;
}

}  // namespace rocegw::daemon
